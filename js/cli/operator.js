// `edgelect step-down`, `pause`, `resume`: what an operator asks of a group.
import os from 'node:os';
import { InvalidArgumentError, Option } from 'commander';
import ms from 'ms';
import { PlainCommand } from './command.js';
import { STORE_HELP, electorOptions, withStore } from './store.js';

const EXIT_CODES = { done: 0, failed: 1, settings: 2, nobody: 3 };
const OF_ERROR = { EDGELECT_CONFIG: 'settings', EDGELECT_NOBODY_LEADS: 'nobody' };

const operatorCommand = (name, what, help, example) => withStore(new PlainCommand(name).description(what))
  .addOption(new Option('--by <name>', 'who asks; the members show it').default(userName()))
  .option('--why <text>', 'why; the members show it')
  .option('--json', 'the result as JSON')
  .addHelpText('after', `
${help}
It writes a field into the lease object, on the condition that the object is
what was read. Nobody's authority becomes shorter or longer by that. A leader of
other software knows no such field. With --store epochs it is refused.
${STORE_HELP}

Exit code: 0 it is asked; 1 the store failed, or nobody knows whether it was
asked; 2 the settings are wrong; 3 nobody leads, or there is no lease object.

Example:
  npx edgelect ${example}`);

export const stepDown = () => operatorCommand('step-down', 'ask the leader to give up its term, so that another member leads', `
The leader finds it at its next renewal, stops its work and releases the lease.
It leaves the lease to others for a lease; the next term is not asked.`,
  'step-down --bucket jobs --region eu-central-1 --lockfile-path leader/report.json --why "a new release"')
  .action((flags) => run(flags, async (elector, words) => {
    const receipt = await elector.stepDown(words);
    return [receipt, `${receipt.leaderId} is asked to end term ${receipt.term}: it does so at its next renewal.`];
  }));

export const pause = () => operatorCommand('pause', 'let nobody lead a group, and skip its slots', `
The leader finds it at its next renewal, stops its work and releases the lease.
No member claims it until \`edgelect resume\`, or until the time that is given.
Slots that are due meanwhile are skipped, and run later where \`missed\` says so.`,
  'pause --bucket jobs --region eu-central-1 --lockfile-path leader/report.json --for 2h --why "a migration"')
  .addOption(new Option('--for <duration>', 'for how long, such as 90s, 30m, 2h').argParser(asDuration).conflicts('until'))
  .addOption(new Option('--until <time>', 'until when, such as 2026-11-21T18:00:00Z').argParser(asTime))
  .action((flags) => run(flags, async (elector, words) => {
    const until = flags.until ?? (flags.for === undefined ? undefined : new Date(Date.now() + flags.for));
    const receipt = await elector.pause({ ...words, until });
    const end = until ? `until ${until.toISOString()}` : 'until `edgelect resume`';
    const leader = receipt.leaderId === null ? '' : ` ${receipt.leaderId} ends term ${receipt.term} at its next renewal.`;
    return [receipt, `The group is paused ${end}.${leader}`];
  }));

export const resume = () => operatorCommand('resume', 'end a pause', `
Each member finds it when it looks next, and one of them leads.`,
  'resume --bucket jobs --region eu-central-1 --lockfile-path leader/report.json')
  .action((flags) => run(flags, async (elector, words) => {
    const receipt = await elector.resume(words);
    return [receipt, receipt.written ? 'The group is resumed.' : 'The group is not paused: nothing was written.'];
  }));

async function run({ by, why, json, for: _for, until: _until, ...flags }, ask) {
  process.exitCode = EXIT_CODES.failed;
  const { Elector } = await import('edgelect');
  try {
    if (!flags.lockfilePath && !process.env.EDGELECT_LOCKFILE_PATH) {
      console.error('edgelect: --lockfile-path = (not set): name the group, by this flag or by EDGELECT_LOCKFILE_PATH.');
      process.exitCode = EXIT_CODES.settings;
      return;
    }
    const elector = new Elector(await electorOptions(flags));
    const [receipt, text] = await ask(elector, { by, why });
    console.log(json ? JSON.stringify(receipt) : text);
    process.exitCode = EXIT_CODES.done;
  } catch (error) {
    console.error(`edgelect: ${error.message}`);
    process.exitCode = EXIT_CODES[OF_ERROR[error.code] ?? 'failed'];
  }
}

function asDuration(text) {
  const duration = ms(text);
  if (Number.isFinite(duration) && duration > 0) return duration;
  throw new InvalidArgumentError('It must be a duration, such as 90s, 30m or 2h.');
}

function asTime(text) {
  const time = new Date(text);
  if (Number.isFinite(time.getTime())) return time;
  throw new InvalidArgumentError('It must be a time, such as 2026-11-21T18:00:00Z.');
}

function userName() {
  try {
    return os.userInfo().username;
  } catch {
    // A container's user may have no name.
    return '';
  }
}
