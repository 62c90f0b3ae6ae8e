// For `require`, as default.cjs.
require('./needs.cjs').check();
module.exports = require('./aws.js');
