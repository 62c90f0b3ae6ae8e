module.exports = require('./dist/edgelect.js');
