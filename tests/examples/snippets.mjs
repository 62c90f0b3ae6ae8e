// What a document shows of an example is in the example, line for line.
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError } from '../../js/tools/run.mjs';

const EXAMPLES = ['js-worker', 'deno-cron', 'bun-cron', 'node-timer'];
const DOCUMENTS = ['docs/crons.md', ...EXAMPLES.map((name) => `examples/${name}/README.md`)];

/** Fails for a block of JavaScript that begins with an import and whose lines are not, in this order, in one file of the
 * examples; and for a document that has no such block. */
export function heldSnippets() {
  const files = EXAMPLES.flatMap((name) => filesIn(inRoot('examples', name)));
  const sources = files.map((file) => linesOf(fs.readFileSync(file, 'utf8')));
  for (const document of DOCUMENTS) {
    const text = fs.readFileSync(inRoot(document), 'utf8');
    const whole = [...text.matchAll(/^```js\n(import .*?)^```$/gms)].map(([, block]) => block);
    if (whole.length === 0) throw new PlainError(`${document} shows nothing of its example`);
    for (const block of whole) {
      if (sources.some((source) => isWithin(linesOf(block), source))) continue;
      throw new PlainError(`${document} shows what no example has:\n${block}`);
    }
  }
}

const filesIn = (folder) => {
  const names = fs.readdirSync(folder, { recursive: true }).filter((name) => /^(?!node_modules).*\.m?js$/.test(name));
  return names.map((name) => path.join(folder, name));
};

const linesOf = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line !== '');

function isWithin(lines, source) {
  let at = -1;
  return lines.every((line) => (at = source.indexOf(line, at + 1)) >= 0);
}
