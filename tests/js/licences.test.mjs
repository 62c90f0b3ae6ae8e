// Which licences a dependency may have.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadJudge } from '../../js/tools/licences.mjs';

test('a licence is allowed if what it offers can be taken of the list alone', async () => {
  const isAllowed = await loadJudge();
  const list = ['MIT', 'Apache-2.0', 'Unicode-3.0'];
  for (const [licence, allowed] of [
    ['MIT', true],
    ['MIT OR LGPL-2.1-or-later', true],
    ['(MIT OR GPL-3.0-only) AND Unicode-3.0', true],
    ['MIT AND LGPL-3.0-or-later', false],
    ['GPL-3.0-only', false],
    ['SEE LICENSE IN LICENSE.txt', false],
    [undefined, false],
  ]) assert.equal(isAllowed(licence, list), allowed, String(licence));
});
