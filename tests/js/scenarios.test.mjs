import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { numberedTests, readLibtest } from '../../js/tools/outcomes.mjs';
import { broken, judge } from '../../js/tools/scenarios.mjs';

const inFolder = (files, work) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'edgelect-numbered-'));
  try {
    for (const [name, text] of Object.entries({ 'src/.keep': '', 'tests/.keep': '', ...files })) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      // Written apart, so that no test is found in this very file.
      writeFileSync(path.join(folder, name), text.replaceAll('NN', 'c03'));
    }
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test('a case holds by a test that passed, and by nothing less', () => {
  const two = [{ file: 'f', name: 'c03 it', cases: [3] }, { file: 'f', name: 'c03 more', cases: [3] }];
  // A name with a placeholder stands for all that were made of it.
  const made = [{ file: 'f', name: 'c03 on ${name}', cases: [3] }];
  const pending = [{ case: 3, title: 'three', pending: 'later' }];
  for (const [outcomes, outcome, more] of [
    [{ 'c03 it': 'passed' }, 'passed'],
    [{ 'c03 it': 'failed' }, 'failed'],
    [{ 'c03 it': 'skipped' }, 'no test of it passed'],
    [{}, 'failed'],
    [{}, 'no test', { tests: [] }],
    [{ 'c03 it': 'passed', 'c03 more': 'failed' }, 'failed', { tests: two }],
    // One that did not run hides nothing.
    [{ 'c03 it': 'passed' }, 'failed', { tests: two }],
    [{ 'c03 on a': 'passed', 'c03 on b': 'failed' }, 'failed', { tests: made }],
    // A pending case may do without a test, but not with one that fails.
    [{}, 'pending', { cases: pending, tests: [] }],
    [{ 'c03 it': 'failed' }, 'failed', { cases: pending }],
  ]) {
    const { cases = [{ case: 3, title: 'three' }], tests = two.slice(0, 1) } = more ?? {};
    const rows = judge(cases, tests, Object.entries(outcomes).map(([name, one]) => ({ file: 'f', name, outcome: one })));
    assert.deepEqual([rows[0].outcome, broken(rows).length], [outcome, ['passed', 'pending'].includes(outcome) ? 0 : 1], JSON.stringify([outcomes, more]));
  }
});

test('numbered tests are found where the suites are, and nowhere else', () => {
  const rust = '#[test]\nfn NN_c04_a() {}\n\n#[tokio::test]\n#[ignore = "x"]\nasync fn NN_b() {}\n\nfn NN_no_test() {}\n';
  const node = "test('NN it\\'s one', () => {});\ntest(`NN on ${x}`, () => {});\ntest('plain', () => {});\ntest.skip('NN never', () => {});\n";
  const found = inFolder({ 'src/store/s3.rs': rust, 'tests/js/a.test.mjs': node, 'tests/js/a.mjs': node }, numberedTests);
  assert.deepEqual(found.map(({ file, name, cases }) => `${file} ${name}: ${cases}`), [
    'src/store/s3.rs c03_c04_a: 3,4', 'src/store/s3.rs c03_b: 3', "tests/js/a.test.mjs c03 it's one: 3", 'tests/js/a.test.mjs c03 on ${x}: 3',
  ]);
  for (const [file, text] of [['tests/sim/a.rs', rust], ['tests/native/a.test.mjs', node]]) {
    assert.throws(() => inFolder({ [file]: text }, numberedTests), ({ message }) => message.startsWith(`${file} has the scenario test c03`) && message.includes('move the test'));
  }
});

test("libtest's text is believed only where its lines and its sums agree", () => {
  const text = (lines, sums) => `\nrunning 3 tests\n${lines.join('\n')}\n\ntest result: ${sums}; 0 measured; 9 filtered out; finished in 0.00s\n`;
  const lines = ['test a::c03_x ... ok', 'test c04_y - should panic ... FAILED', 'test c05_z ... ignored, slow'];
  assert.deepEqual(readLibtest(text(lines, 'FAILED. 1 passed; 1 failed; 1 ignored')), [
    { name: 'a::c03_x', outcome: 'passed' }, { name: 'c04_y', outcome: 'failed' }, { name: 'c05_z', outcome: 'skipped' },
  ]);
  assert.equal(readLibtest(text(lines, 'ok. 2 passed; 0 failed; 1 ignored')), undefined);
  assert.equal(readLibtest(text([lines[0], 'chatter test c04_y ... ok'], 'ok. 2 passed; 0 failed; 0 ignored')), undefined);
  assert.equal(readLibtest(lines[0]), undefined, 'it ended before the sums');
});
