require('../needs.cjs').check();
module.exports = require('../dist/edgelect.js');
