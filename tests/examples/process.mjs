// One process of an example, with what it prints, line by line.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { endOf, endProcess, killGroup, spawnKept } from '../../js/tools/cleanup.mjs';
import { lineReader } from '../../js/tools/run.mjs';

/** Within what a process has to end, on a machine that is busy with the others. */
const ENDS_MS = 60_000;

export function startExample([program, ...args], { cwd, env, onLine }) {
  const child = spawnKept(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines = [];
  let errors = '';
  const read = lineReader((line) => {
    lines.push(line);
    onLine?.(line);
  });
  child.stdout.on('data', read);
  child.stderr.on('data', (text) => (errors += text));
  const ended = endOf(child).catch(({ message }) => message);
  return {
    child, lines, ended,
    errors: () => errors,
    // Its last lines may still be on their way when it has ended.
    kill: () => endProcess(child).then(() => ended),
    /** Asks it to end and tells what it ended with, or `late`. */
    async stop() {
      killGroup(child.pid, 'SIGTERM');
      const code = await Promise.race([ended, sleep(ENDS_MS, 'late', { ref: false })]);
      await endProcess(child);
      return code;
    },
  };
}

/** What members rightly say of a store that a busy machine keeps from answering in time. */
const SLOW = /^edgelect: .*: (.*no answer within \d+ ms|the problem is over)\n/gm;

/** Hands started processes to the work and kills them after it. None may have written an error; where the work fails, what each
 * has printed is told. `members` may be changed meanwhile: `{ name: process }`. */
export async function withProcesses(members, work) {
  try {
    await work();
    for (const [name, member] of Object.entries(members)) assert.equal(member.errors().replace(SLOW, ''), '', name);
  } catch (error) {
    for (const [name, { lines, errors }] of Object.entries(members)) error.message += `\n\n${name}:\n${[...lines, errors()].join('\n')}`;
    throw error;
  } finally {
    await Promise.all(Object.values(members).map((member) => member.kill()));
  }
}

/** What `--help` shows of an example, and each option that is wrong: its arguments, and the error. */
export async function helpAndRefusals(run, help, wrong) {
  const { code, output } = await run(['--help']);
  assert.equal(code, 0);
  assert.match(output, help);
  for (const [args, expected, ...more] of wrong) {
    const refused = await run(args, ...more);
    assert.equal(refused.code, 1, args.join(' '));
    assert.match(refused.errors, expected);
  }
}
