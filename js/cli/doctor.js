// `edgelect doctor`: whether a store keeps the conditions that leases stand on, step by step.
import { styleText } from 'node:util';
import { Command, InvalidArgumentError } from 'commander';

const RACES = 20;
const MOST_RACES = 1_000;
const EXIT_CODES = { holds: 0, violated: 1, unclear: 3 };
const WRONG_SETTINGS = 2;
/** The flags that stand for a variable; secrets have none, because others see a command's line. */
const VARIABLES = { endpoint: 'EDGELECT_ENDPOINT', bucket: 'EDGELECT_BUCKET', region: 'EDGELECT_REGION', lockfilePath: 'EDGELECT_LOCKFILE_PATH', pathStyle: 'EDGELECT_PATH_STYLE' };
const DEFAULT_PATH = 'leader.json';
const WHAT = {
  'update of an absent object': 'must be refused',
  create: 'must be taken, and seen at once',
  'create again': 'must be refused',
  update: 'with the current version: must be taken',
  'update with a stale version': 'must be refused',
  race: 'five updates of one version at once: one may land',
  clocks: 'Date beside Last-Modified, within storeSkew',
};

/** What is wrong with its command line is no finding, and 1 is one. */
class Examination extends Command {
  error(message, options) {
    return super.error(message, { ...options, exitCode: WRONG_SETTINGS });
  }
}

export const doctor = () => new Examination('doctor')
  .description('judge whether a store may be trusted with leases')
  .option('--endpoint <url>', 'the store; AWS in the region if left out')
  .option('--bucket <name>', 'the bucket')
  .option('--region <name>', 'the region that signatures name; auto for R2')
  .option('--lockfile-path <key>', `the lease object, beside which the probe works (default: ${DEFAULT_PATH})`)
  .option('--path-style', 'the bucket is the first part of the path')
  .option('--races <n>', 'how often the race is run, six requests each', readRaces, RACES)
  .option('--json', 'print the diagnosis as JSON, and nothing else')
  .addHelpText('after', `
It makes an object LOCKFILE_PATH.probe-RANDOM, breaks each condition on it on
purpose, looks at what the store keeps, and deletes it. The lease object itself
is not touched, so it may be run beside a group that works.

Each flag stands for a variable: EDGELECT_ENDPOINT, EDGELECT_BUCKET,
EDGELECT_REGION, EDGELECT_LOCKFILE_PATH, EDGELECT_PATH_STYLE. Secrets come by
variables only: EDGELECT_ACCESS_KEY_ID and EDGELECT_SECRET_ACCESS_KEY, or AWS_…

The credentials need GetObject, PutObject and ListBucket; with DeleteObject
nothing is left behind.

Exit code: 0 the store keeps its conditions; 1 it breaks one, so two could
lead: do not use it; 3 it cannot be told, and the steps say why; 2 the settings
are wrong.

Examples:
  npx edgelect doctor --bucket jobs --region eu-central-1
  npx edgelect doctor --endpoint https://ACCOUNT.r2.cloudflarestorage.com --bucket jobs --region auto
  npx edgelect doctor --races 200 --json | jq .finding`)
  .action(async (options) => {
    // Whatever ends it early, as a reader that goes away does: nothing is known to hold.
    process.exitCode = EXIT_CODES.unclear;
    process.exitCode = await examine(options);
  });

async function examine({ races, json, ...flags }) {
  for (const [flag, variable] of Object.entries(VARIABLES)) if (flags[flag] !== undefined) process.env[variable] = String(flags[flag]);
  process.env.EDGELECT_LOCKFILE_PATH ||= DEFAULT_PATH;
  const { Elector } = await import('edgelect');
  const screen = json ? { step() {}, next() {}, end() {} } : new Screen(races);
  let count = 0;
  const onStep = (step) => {
    screen.step(step);
    count += 1;
    screen.next(count);
  };
  let diagnosis;
  try {
    const elector = new Elector();
    screen.next(0);
    diagnosis = await elector.doctor({ races, onStep });
  } catch (error) {
    if (error.code !== 'EDGELECT_CONFIG') throw error;
    console.error(`edgelect: ${error.message}\nSet it by a flag or a variable: edgelect doctor --help.`);
    return WRONG_SETTINGS;
  }
  // Before the last words: a reader that has gone away must not hide the finding.
  process.exitCode = EXIT_CODES[diagnosis.finding];
  if (json) say(JSON.stringify(diagnosis, undefined, 2));
  else screen.end(diagnosis);
  return EXIT_CODES[diagnosis.finding];
}

/** A line for each step; on a terminal, the one that is under way is shown until it is done. */
class Screen {
  #races;
  #shown = process.stdout.isTTY === true;

  constructor(races) {
    this.#races = races;
  }

  next(index) {
    const step = Object.keys(WHAT)[index];
    if (this.#shown && step) process.stdout.write(`  …         ${this.#line(step)}`);
  }

  step({ step, finding, why }) {
    this.#clear();
    say(`  ${paint(finding, finding.padEnd(10))}${this.#line(step)}`);
    if (why) say(`            ${why}`);
  }

  end({ store, finding, clockOffset, clockError }) {
    this.#clear();
    if (clockOffset !== null) {
      const [ahead, far] = [clockOffset < 0 ? 'behind' : 'ahead of', Math.abs(clockOffset)];
      say(`The store's clock is ${far} ms ${ahead} this machine's, give or take ${clockError} ms. No lease depends on it.`);
    }
    say(`${paint(finding, SENTENCES[finding])}${store ? `: ${store}` : ''}`);
  }

  #line(step) {
    const name = step === 'race' ? `race, ${this.#races} ${this.#races === 1 ? 'time' : 'times'}` : step;
    return `${name.padEnd(30)}${WHAT[step]}`;
  }

  #clear() {
    if (this.#shown) process.stdout.write('\r\u001b[2K');
  }
}

const SENTENCES = {
  holds: 'The store keeps its conditions',
  violated: 'Do not use this store: two could lead',
  unclear: 'It cannot be told; see the step above, and try again',
};

const COLOURS = { holds: 'green', unclear: 'yellow', violated: 'red' };

function readRaces(text) {
  const races = Number(text);
  if (!/^\d+$/.test(text) || races < 1 || races > MOST_RACES) throw new InvalidArgumentError(`It is a whole number from 1 to ${MOST_RACES}.`);
  return races;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

// hasColors() heeds NO_COLOR and TERM, and only a terminal has it.
function paint(finding, text) {
  return process.stdout.isTTY && process.stdout.hasColors?.() ? styleText(COLOURS[finding], text) : text;
}
