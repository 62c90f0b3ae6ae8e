// `npm run figures`: the numbers that the README prints, each measured by one command.
import { parsed, say } from '../tools/command.mjs';
import { PlainError, exit, fail } from '../tools/run.mjs';
import { ensure } from '../tools/setup.mjs';

const FIGURES = {
  requests: 'requests of a leader and of its followers, counted at the store (2.5 min)',
  failover: 'time from a crash or a resignation to the next leader, 20 rounds each (2.5 min)',
  signature: 'time to sign one request, beside other signers (1 min, with a compile)',
  'first-tick': "a fresh isolate's first cron tick, up to its first request and to leadership (1 min)",
  tick: 'a cron trigger a minute: time without authority, requests and CPU of a tick, triggers that come late (7 min)',
  groups: 'a thousand groups in one process: memory, CPU, requests, and that nothing grows (11 min)',
  slot: 'CPU of one slot of the deployed Worker, in a fresh isolate and in a warm one (1 min)',
  fleet: '300 members with peers on Node, Deno, Bun and in native Rust, through ten failovers (6 min, with a compile)',
  size: 'what has to be uploaded and loaded, compressed (15 s)',
};

const BESIDE = 'requests';

const HELP = `npm run figures                 measures all figures, one after the other
npm run figures -- NAME ...     measures these
npm run figures -- --quick      with less time and wider limits, for busy machines; not for the README
npm run figures -- --minutes N  measures groups for so long, not 10 minutes (with --quick 1)
npm run figures -- --list       lists the figures
npm run figures -- --write      writes docs/generated/figures.md out of the last results of all
Ends with 1 where a figure breaks its limit. Each result is kept in build/figures/NAME.json.`;

const OPTIONS = {
  quick: { type: 'boolean' },
  minutes: { type: 'string' },
  list: { type: 'boolean' },
  write: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
};

async function main(args) {
  const { values, positionals } = parsed(args, OPTIONS, HELP, { allowPositionals: true });
  if (values.help) return say(HELP);
  if (values.list) return say(Object.entries(FIGURES).map(([name, what]) => `${name.padEnd(12)}${what}`).join('\n'));
  const unknown = positionals.find((name) => !Object.hasOwn(FIGURES, name));
  if (unknown !== undefined) throw new PlainError(`there is no figure "${unknown}": see npm run figures -- --list`);
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  if (minutes !== undefined && !(minutes > 0 && minutes <= 1_440)) throw new PlainError('--minutes takes a number above 0, up to 1440');
  await ensure();
  const names = positionals.length > 0 ? positionals : Object.keys(FIGURES);
  const { machine, publish, writePage } = await import('./figure.mjs');
  if (values.write) return say(`${writePage(Object.keys(FIGURES))} is written`);
  const broken = [];
  const oneByOne = async (lane) => {
    for (const name of lane) {
      const { measure } = await import(`./${name}.mjs`);
      const before = machine();
      // What a quick run found is not for the README, so it has a name of its own.
      const keptAs = values.quick ? `${name}-quick` : name;
      if (!publish(keptAs, await measure({ quick: values.quick ?? false, minutes }), before)) broken.push(name);
    }
  };
  // Requests are counted while leases pass, so a quick run measures the others beside them.
  const lanes = [names.filter((name) => name === BESIDE), names.filter((name) => name !== BESIDE)];
  await Promise.all((values.quick ? lanes : [names]).map(oneByOne));
  if (broken.length > 0) throw new PlainError(`beyond the limit: ${broken.join(', ')}`);
  return 0;
}

main(process.argv.slice(2)).then(exit, fail);
