// `npm run scenarios`: each numbered case, the tests that hold it, and what became of them.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parsed, say } from './command.mjs';
import { inRoot } from './paths.mjs';
import { PlainError, exit, fail } from './run.mjs';
import { EVERYTHING, ensure } from './setup.mjs';

const HELP = `npm run scenarios                runs the tests that carry a scenario's number, and prints case, test and outcome
npm run scenarios -- --case 3    only those of case 3; repeat it for more
npm run scenarios -- --list      which tests there are for each case, read from the source; nothing is run

A test belongs to a case by its name: \`c03_…\` in tests/*.rs and src/, \`c03 …\` in *.test.mjs; \`c07_c08_…\` holds two.
The cases are in tests/scenarios.json. One that is \`pending\` there may do without a test, for the reason given.
The command ends with 1, and names the cases, where any other has no passing test, or where a test failed or did not run.`;

/** The table's rows for these cases. `outcomes` is left out where nothing was run. */
export function judge(cases, tests, outcomes) {
  return cases.map(({ case: number, title, pending }) => {
    const own = tests.filter((test) => test.cases.includes(number)).flatMap((test) => results(test, outcomes));
    const failed = own.some(({ outcome }) => outcome === 'failed' || outcome === 'not run');
    const passed = !failed && own.some(({ outcome }) => outcome === 'passed');
    const missing = own.length === 0 ? 'no test' : 'no test of it passed';
    const outcome = failed ? 'failed' : passed ? 'passed' : pending === undefined ? missing : 'pending';
    return { number, title, tests: own, outcome, ...(outcome === 'pending' && { reason: pending }) };
  });
}

/** A name with a placeholder stands for each name that was made of it. */
function results({ file, name }, outcomes) {
  if (outcomes === undefined) return [{ file, name }];
  const placeholder = name.indexOf('${');
  const isIt = (one) => (placeholder < 0 ? one === name : one.startsWith(name.slice(0, placeholder)));
  const found = outcomes.filter((one) => one.file === file && isIt(one.name));
  return found.length > 0 ? found : [{ file, name, outcome: 'not run' }];
}

/** The cases that the command fails for. */
export const broken = (rows) => rows.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'pending');

/** What the steps of this run have not recorded is run now; then the table. Rejects with the cases that have no passing test. */
export async function scenarios({ numbers = [] } = {}) {
  const { numberedTests, recorded, runTests } = await import('./outcomes.mjs');
  const cases = chosen(numbers);
  const tests = numberedTests().filter((test) => cases.some((one) => test.cases.includes(one.case)));
  known(tests);
  const outcomes = recorded();
  const missing = tests.filter((test) => results(test, outcomes).some(({ outcome }) => outcome === 'not run'));
  const rows = judge(cases, tests, [...outcomes, ...await runTests(missing)]);
  await print(rows);
  const bad = broken(rows);
  if (bad.length === 0) return;
  const list = bad.map(({ number, outcome }) => `${number} (${outcome})`).join(', ');
  throw new PlainError(`not every case holds: ${list}`);
}

async function list() {
  const { numberedTests } = await import('./outcomes.mjs');
  const tests = numberedTests();
  known(tests);
  await print(judge(chosen([]), tests).map((row) => ({ ...row, outcome: row.tests.length > 0 ? '' : row.outcome })));
}

function chosen(numbers) {
  const cases = JSON.parse(fs.readFileSync(inRoot('tests/scenarios.json'), 'utf8'));
  const wrong = numbers.find((number) => !cases.some((one) => String(one.case) === number));
  if (wrong !== undefined) throw new PlainError(`there is no case ${JSON.stringify(wrong)}: --case takes a number from 1 to ${cases.length}`);
  return cases.filter((one) => numbers.length === 0 || numbers.includes(String(one.case)));
}

// A mistyped number would otherwise vouch for nothing and be seen by nobody.
function known(tests) {
  const last = chosen([]).length;
  const wrong = tests.find(({ cases }) => cases.some((number) => number < 1 || number > last));
  if (wrong !== undefined) throw new PlainError(`${wrong.file}: the test ${wrong.name} has a number that is no case of tests/scenarios.json (1 to ${last})`);
}

async function print(rows) {
  const { default: Table } = await import('cli-table3');
  const table = new Table({ head: ['', 'case', 'test', 'outcome'], colWidths: [4, 30], wordWrap: true, style: { head: [], border: [] } });
  for (const { number, title, tests, outcome, reason } of rows) {
    const lines = tests.flatMap(({ file, name, outcome: own }, index) => [
      ...(file === tests[index - 1]?.file ? [] : [[`${file}:`, '']]),
      [`  ${name}`, own ?? ''],
    ]);
    if (tests.length === 0) lines.push([reason ?? '', outcome]);
    else if (outcome === 'pending') lines.push([reason, outcome]);
    table.push([{ hAlign: 'right', content: number }, title, ...[0, 1].map((column) => lines.map((line) => line[column]).join('\n'))]);
  }
  console.log(table.toString());
  const count = (which) => rows.filter(which).length;
  const pending = count(({ outcome }) => outcome === 'pending');
  const ran = rows.flatMap(({ tests }) => tests).filter((test) => test.outcome !== undefined);
  if (ran.length === 0) return console.log(`${rows.length} cases: ${count(({ tests }) => tests.length > 0)} have a test, ${pending} pending`);
  console.log(`${rows.length} cases: ${count(({ outcome }) => outcome === 'passed')} passed, ${pending} pending, ${broken(rows).length} not held`);
}

async function main(args) {
  const options = { case: { type: 'string', multiple: true }, help: { type: 'boolean', short: 'h' }, list: { type: 'boolean' } };
  const { values } = parsed(args, options, HELP);
  if (values.help) return say(HELP);
  if (values.list && values.case) throw new PlainError(`--list takes no --case: it lists all\n${HELP}`);
  chosen(values.case ?? []);
  await ensure(values.list ? ['packages'] : EVERYTHING.filter((name) => name !== 'runner'));
  return values.list ? list() : scenarios({ numbers: values.case });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).then(() => exit(), fail);
}
