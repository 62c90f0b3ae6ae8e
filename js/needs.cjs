// package.json's `engines`, for those who never see it: one line instead of a SyntaxError from the command line and of
// ERR_REQUIRE_ESM from `require`. Nothing is in here that Node 14 could not load.
const node = globalThis.process?.versions?.node;
const [major, minor] = (node ?? '24.0').split('.').map(Number);
const isNewEnough = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);

/** What to do about a Node that is too old, or undefined. */
exports.shortfall = isNewEnough
  ? undefined
  : `Node 20.19, or 22.12 and newer, is needed, this is ${node}: run \`nvm install 24\` (or see https://nodejs.org/en/download)`;

/** Throws where Node could not load the ES modules that come next. */
exports.check = () => {
  if (exports.shortfall !== undefined) throw new Error(`edgelect: ${exports.shortfall}`);
};
