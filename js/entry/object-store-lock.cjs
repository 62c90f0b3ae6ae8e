// For `require`: Node loads the ES module synchronously (20.19, 22.12 and newer), so that both ways give the same classes.
require('../needs.cjs').check();
module.exports = require('./object-store-lock.js');
