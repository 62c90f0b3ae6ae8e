// What `require` has of the types that `import` has: their names are listed twice.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

const namesIn = (file) => {
  const text = fs.readFileSync(new URL(`../../js/${file}`, import.meta.url), 'utf8');
  const declared = [...text.matchAll(/^export (?:declare )?(?:class|const|function|interface|type) (\w+)/gm)].map(([, name]) => name);
  const listed = [...text.matchAll(/^export type \{([^}]*)\}/gm)].flatMap(([, names]) => names.match(/\w+/g));
  return [...new Set([...declared, ...listed])].sort();
};

for (const name of ['index', 'object-store-lock', 'worker-env']) {
  test(`each type of ${name}.d.ts can be required`, () => assert.deepEqual(namesIn(`entry/${name}.d.cts`), namesIn(`${name}.d.ts`)));
}
