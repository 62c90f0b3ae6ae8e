import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const read = (file) => fs.readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

/** What the Worker knows: the lists at the head of src/vars.rs, before its first function. */
const known = () => [...read('src/vars.rs').split('\npub fn ')[0].matchAll(/"(EDGELECT_[A-Z0-9_]+)"/g)].map(([, name]) => name).sort();

test('docs/options.md has each variable once, with its default and its rule', () => {
  const rows = read('docs/options.md').split('\n').filter((line) => line.startsWith('| `EDGELECT_')).map((line) => line.slice(1, -1).split(' | '));
  assert.deepEqual(rows.map(([name]) => /`(\w+)`/.exec(name)[1]).sort(), known());
  for (const row of rows) assert.ok(row.length === 3 && row.every((cell) => cell.trim() !== ''), row.join('|'));
});

test('Env has each variable, and no other', () => {
  const names = [...read('js/worker-env.d.ts').matchAll(/^ {2}(EDGELECT_[A-Z0-9_]+)\?:/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), known());
});

test('wrangler.toml names no variable that the Worker does not know', () => {
  const names = [...read('wrangler.toml').matchAll(/EDGELECT_[A-Z0-9_]+/g)].map(([name]) => name.split('__')[0]);
  assert.ok(names.includes('EDGELECT_R2') && names.every((name) => known().includes(name)), names.join());
});
