// What a document shows of an example is in the example, line for line, and what it leaves out it marks; and an example is
// started as its help says.
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError } from '../../js/tools/run.mjs';

const EXAMPLES = ['js-worker', 'deno-cron', 'bun-cron', 'node-timer'];
const COMMAND = /\b(?:node|deno|bun) [^\n`]*?main\.m?js/g;
const DOCUMENTS = ['docs/crons.md', ...EXAMPLES.map((name) => `examples/${name}/README.md`)];

/** Fails for a block of JavaScript that begins with an import and is not one file of the examples from its first line of code
 * to its last, but for comments, and for cuts that a line `// …` marks; and for a document that has no such block. */
export function heldSnippets() {
  const files = EXAMPLES.flatMap((name) => filesIn(inRoot('examples', name)));
  const sources = files.map((file) => linesOf(fs.readFileSync(file, 'utf8')));
  for (const document of DOCUMENTS) {
    const text = fs.readFileSync(inRoot(document), 'utf8');
    const whole = [...text.matchAll(/^```js\n(import .*?)^```$/gms)].map(([, block]) => block);
    if (whole.length === 0) throw new PlainError(`${document} shows nothing of its example`);
    for (const block of whole) {
      if (sources.some((source) => isShown(source, linesOf(block)))) continue;
      throw new PlainError(`${document} shows what no example has, or does not mark a cut:\n${block}`);
    }
  }
}

/** Fails for a block of Rust in docs/crons.md that is not, word for word, in the Rust Worker, and if there is none. */
export function heldRust() {
  const [document, source] = ['docs/crons.md', 'examples/rust-worker/src/lib.rs'].map((file) => fs.readFileSync(inRoot(file), 'utf8'));
  const blocks = [...document.matchAll(/^```rust\n(.*?)^```$/gms)].map(([, block]) => block);
  const other = blocks.find((block) => !source.includes(block));
  if (other || blocks.length === 0) throw new PlainError(`docs/crons.md shows what the Rust Worker has not:\n${other ?? 'nothing'}`);
}

/** Fails where an example's README starts it otherwise than its own help says. */
export function heldCommands() {
  for (const name of fs.readdirSync(inRoot('examples')).filter((one) => fs.existsSync(inRoot('examples', one, 'README.md')))) {
    const main = ['main.mjs', 'main.js'].map((file) => inRoot('examples', name, file)).find((file) => fs.existsSync(file));
    const help = main && /HELP = `(.*?)`;/s.exec(fs.readFileSync(main, 'utf8'))?.[1];
    if (!help) continue;
    const [said, known] = [fs.readFileSync(inRoot('examples', name, 'README.md'), 'utf8'), help].map((text) => text.match(COMMAND) ?? []);
    const other = said.find((command) => !known.includes(command));
    if (other || said.length === 0) throw new PlainError(`examples/${name}/README.md says \`${other ?? 'nothing'}\`, and its help \`${known}\``);
  }
}

const filesIn = (folder) => {
  const names = fs.readdirSync(folder, { recursive: true }).filter((name) => /^(?!node_modules).*\.m?js$/.test(name));
  return names.map((name) => path.join(folder, name));
};

/** The lines of code, which a comment within them does not part, and the marks. */
const linesOf = (text) => text.split('\n').map((line) => line.trim()).filter((line) => !/^(\/\/(?! …)|\/\*\*|\*|$)/.test(line));

function isShown(code, block) {
  let [at, cut] = [0, false];
  for (const line of block) {
    if (line.startsWith('// …')) {
      cut = true;
      continue;
    }
    const found = code.indexOf(line, at);
    if (found < 0 || (found > at && !cut)) return false;
    [at, cut] = [found + 1, false];
  }
  return at === code.length || cut;
}
