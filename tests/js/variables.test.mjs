// What documents and declarations list twice.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { inRoot } from '../../js/tools/paths.mjs';

const read = (file) => fs.readFileSync(inRoot(file), 'utf8');

/** What the Worker knows: the lists at the head of src/vars.rs, before its first function. */
const known = () => [...read('src/vars.rs').split('\npub fn ')[0].matchAll(/"(EDGELECT_[A-Z0-9_]+)"/g)].map(([, name]) => name).sort();

test('docs/options.md has each variable once, with its default and its rule, and so has Env', () => {
  const rows = read('docs/options.md').split('\n').filter((line) => line.startsWith('| `EDGELECT_')).map((line) => line.slice(1, -1).split(' | '));
  assert.deepEqual(rows.map(([name]) => /`(\w+)`/.exec(name)[1]).sort(), known());
  for (const row of rows) assert.ok(row.length === 3 && row.every((cell) => cell.trim() !== ''), row.join('|'));
  const typed = [...read('js/worker-env.d.ts').matchAll(/^ {2}(EDGELECT_[A-Z0-9_]+)\?:/gm)].map(([, name]) => name);
  assert.deepEqual(typed.sort(), known());
});

test('each page, and each part of one, that an error names is there', () => {
  const files = ['src', 'js'].flatMap((folder) => fs.readdirSync(inRoot(folder), { recursive: true })
    .filter((file) => /\.(rs|js)$/.test(file) && !file.startsWith('dist')).map((file) => `${folder}/${file}`));
  const named = new Set(files.flatMap((file) => read(file).match(/docs\/[a-z0-9-]+\.md(#[a-z0-9-]+)?/g) ?? []));
  assert.ok(named.has('docs/options.md#a-store-on-a-private-network'), [...named].join());
  for (const one of named) {
    const [page, part] = one.split('#');
    const headings = [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading.toLowerCase().replace(/[^a-z0-9 -]/g, '').replaceAll(' ', '-'));
    assert.ok(part === undefined || headings.includes(part), one);
  }
});

/** The rows of the first table below a heading of docs/options.md, in cells. */
const rowsBelow = (heading) => {
  const [, text] = `\n${read('docs/options.md')}`.split(`\n${heading}\n`);
  const [table] = /(?:^\|.*\n)+/m.exec(text);
  return table.trim().split('\n').slice(2).map((line) => line.slice(1, -1).split(' | ').map((cell) => cell.trim()));
};

const spans = (cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name);
const withoutComments = (text) => text.replace(/\/\*\*.*?\*\//gs, '');
const fields = (text) => [...text.matchAll(/(\w+)\??: /g)].map(([, name]) => name);
const body = (text, head) => text.slice(text.indexOf(head)).split(/^\}/m)[0];

test('docs/options.md has each option of an elector once', () => {
  const types = withoutComments(read('js/index.d.ts'));
  const typed = ['TimingOptions', 'ElectorOptions'].flatMap((name) =>
    [...body(types, `export interface ${name}`).matchAll(/^ {2}(\w+)\?:/gm)].map(([, option]) => option));
  const alone = rowsBelow('## Options without a variable').flatMap(([cell]) => spans(cell));
  // An option with a variable begins the last cell of that variable's row.
  const rows = rowsBelow('### Group and timing').map(([variable, , cell]) => [...spans(variable), /^`(\w+)`: /.exec(cell)?.[1]]);
  const settable = [...read('src/vars.rs').matchAll(/^ {4}\("(EDGELECT_\w+)", "(\w+)", Kind::/gm)].map(([, ...both]) => both);
  assert.deepEqual(rows.sort(), settable.sort());
  assert.deepEqual([...alone, ...rows.map(([, option]) => option), 'storage'].sort(), typed.sort());
});

test('docs/options.md has each option of each storage that takes any, and no other', () => {
  const types = withoutComments(read('js/index.d.ts'));
  const shared = fields(body(types, 'export interface ServiceOptions'));
  const typed = [...types.matchAll(/^export class (\w+Storage)(?: implements \w+)? \{(.*?)^\}/gms)].flatMap(([, storage, inside]) => {
    const [, before, taken] = /constructor\(([^{)]*)\{(.*?)\}/s.exec(inside) ?? [];
    if (taken === undefined) return [];
    return [...fields(taken), ...(before.includes('ServiceOptions') ? shared : [])].map((option) => `${option} of ${storage}`);
  });
  const rows = rowsBelow('## Storages').flatMap(([option, storages]) => spans(storages).map((storage) => `${spans(option)} of ${storage}`));
  assert.ok(typed.length > 15, typed.join());
  assert.deepEqual(rows.sort(), typed.sort());
});

// What `require` has of the types that `import` has.
const namesIn = (file) => {
  const text = read(`js/${file}`);
  const declared = [...text.matchAll(/^export (?:declare )?(?:class|const|function|interface|type) (\w+)/gm)].map(([, name]) => name);
  const listed = [...text.matchAll(/^export type \{([^}]*)\}/gm)].flatMap(([, names]) => names.match(/\w+/g));
  return [...new Set([...declared, ...listed])].sort();
};

for (const name of ['index', 'object-store-lock', 'worker-env']) {
  test(`each type of ${name}.d.ts can be required`, () => assert.deepEqual(namesIn(`entry/${name}.d.cts`), namesIn(`${name}.d.ts`)));
}
