// What every runner runs: the suite and the table of bad input.
import { badInput } from './bad-input.mjs';
import { runAll } from './harness.mjs';
import { suite } from './suite.mjs';

export const main = (context, rejections) => runAll({ ...suite, ...badInput }, context, rejections);
