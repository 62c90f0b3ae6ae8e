// For `require`, as default.cjs.
module.exports = require('./aws.js');
