// What a document shows of an example is in the example, line for line.
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError } from '../../js/tools/run.mjs';

const EXAMPLES = ['js-worker', 'deno-cron', 'bun-cron', 'node-timer'];
const DOCUMENTS = EXAMPLES.map((name) => `examples/${name}/README.md`);

/** Fails for a block of JavaScript with an `import` whose lines are not, in this order, in one file of the examples; and for a
 * document that has none. */
export function heldSnippets() {
  const sources = EXAMPLES.flatMap((name) => filesIn(inRoot('examples', name))).map((file) => linesOf(fs.readFileSync(file, 'utf8')));
  for (const document of DOCUMENTS) {
    const blocks = [...fs.readFileSync(inRoot(document), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block);
    const whole = blocks.filter((block) => block.startsWith('import '));
    if (whole.length === 0) throw new PlainError(`${document} shows nothing of its example`);
    for (const block of whole) {
      if (!sources.some((source) => isWithin(linesOf(block), source))) throw new PlainError(`${document} shows what no example has:\n${block}`);
    }
  }
}

const filesIn = (folder) => fs.readdirSync(folder, { recursive: true }).filter((name) => /\.m?js$/.test(name)).map((name) => path.join(folder, name));

const linesOf = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line !== '');

function isWithin(lines, source) {
  let at = -1;
  return lines.every((line) => (at = source.indexOf(line, at + 1)) >= 0);
}
