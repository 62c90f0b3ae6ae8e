// The two lanes of `npm test`: what runs beside what, and what is shown of a step that fails.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { runLanes } from '../../js/tools/lanes.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-lanes-'));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Runs steps that each are a line of JavaScript; what they printed, the exit code, and the order in which they began and ended. */
async function ran(steps, options = {}) {
  const order = path.join(folder, `order-${Math.random()}`);
  fs.writeFileSync(order, '');
  const script = ({ name, code = '' }) => `const note = (what) => require('fs').appendFileSync(${JSON.stringify(order)}, what + ' ${name}\\n');
    note('begins'); (async () => { ${code} })().then(() => note('ends'))`;
  const command = (name) => [process.execPath, '-e', script(steps.find((one) => one.name === name))];
  const said = [];
  const { log } = console;
  console.log = (line) => said.push(line);
  try {
    const named = steps.map((one) => ({ what: 'a step', ...one }));
    const code = await runLanes(named, { ...options, command, logs: path.join(folder, 'logs') });
    return { code, said: said.join('\n'), order: fs.readFileSync(order, 'utf8').trim().split('\n') };
  } finally {
    console.log = log;
  }
}

const fails = "console.log('the whole'); console.error('story'); process.exit(3);";

test('a step that fails ends the others and shows its output whole and last', async () => {
  const { code, said, order } = await ran([
    { name: 'broken', lane: 'computes', code: fails },
    { name: 'later', lane: 'computes' },
    { name: 'long', lane: 'waits', code: 'await new Promise((resolve) => setTimeout(resolve, 60_000));' },
    { name: 'after', lane: 'waits', after: ['broken'] },
  ]);
  assert.equal(code, 1);
  assert.ok(!order.includes('begins later') && !order.includes('ends long') && !order.includes('begins after'));
  assert.match(said, /^broken +FAILED/m);
  assert.match(said, /^long +not run$/m);
  assert.match(said, /=== broken failed; its output, kept in .*:\n\nthe whole\nstory\n$/);
});

test('with keepGoing the others run, but for those that need it', async () => {
  const { code, said, order } = await ran([
    { name: 'broken', lane: 'computes', code: fails },
    { name: 'later', lane: 'computes' },
    { name: 'after', lane: 'waits', after: ['broken'] },
    { name: 'last', lane: 'waits', after: 'all' },
  ], { keepGoing: true });
  assert.equal(code, 1);
  assert.ok(order.includes('ends later') && !order.includes('begins after'));
  assert.match(said, /^after +not run$/m);
});
