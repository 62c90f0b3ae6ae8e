// What every runner runs: the suite and the table of bad input.
import { badInput } from './bad-input.mjs';
import { runAll } from './harness.mjs';
import { suite } from './suite.mjs';

/** `share` of `[part, parts]` runs a part of the tests. */
export const main = ({ share: [part, parts] = [0, 1], ...context }, rejections) => {
  const all = Object.entries({ ...suite, ...badInput });
  return runAll(all.filter((_test, index) => index % parts === part), context, rejections);
};
