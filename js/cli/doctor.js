// `edgelect doctor`: whether a store keeps the conditions that leases stand on, step by step.
import { styleText } from 'node:util';
import { EXIT, commandOf } from './command.js';
import { codeOf, electorOptions, visible } from './store.js';

const RACES = 20;
/** An account has five requests a second of Route 53, for all its zones. */
const ZONE_RACES = 1;
const AGE_S = 5;
/** A step that takes longer than this is shown while it is under way. */
const LONG_S = 2;
const EXIT_CODES = { holds: 0, violated: 1, unclear: 3 };
const WHAT = {
  'update of an absent object': 'must be refused',
  create: 'must be taken, and seen at once',
  'create again': 'must be refused',
  update: 'must be taken',
  'update with a stale version': 'must be refused',
  'update with a nearly right version': 'must be refused',
  race: 'five at once: one may land',
  'read with a stale version': 'must show the new one',
  'create again, later': 'must be refused',
  'update with a stale version, later': 'must be refused',
  clocks: 'must agree within storeSkew',
};

export const doctor = () => commandOf('doctor').action(async (options) => {
  // Whatever ends it early, as a reader that goes away does: nothing is known to hold.
  process.exitCode = EXIT_CODES.unclear;
  process.exitCode = await examine(options);
});

async function examine({ json, races: given, age = AGE_S, ...flags }) {
  const races = given ?? ((flags.store ?? process.env.EDGELECT_STORE) === 'route53' ? ZONE_RACES : RACES);
  const { Elector } = await import('edgelect');
  let elector;
  const screen = json ? { begin() {}, step() {}, end() {} } : new Screen({ races, age });
  const onBegin = (step) => screen.begin(step);
  const onStep = (step) => screen.step(step);
  let diagnosis;
  try {
    elector = new Elector(await electorOptions(flags));
    diagnosis = await elector.doctor({ races, age: age * 1_000, onBegin, onStep });
  } catch (error) {
    if (error.code !== 'EDGELECT_CONFIG') throw error;
    return codeOf(error, 'doctor');
  }
  const code = diagnosis.refusal ? EXIT.settings : EXIT_CODES[diagnosis.finding];
  // Before the last words: a reader that has gone away must not hide the finding.
  process.exitCode = code;
  if (json) say(JSON.stringify(diagnosis, undefined, 2));
  else screen.end(diagnosis, elector.config.lockfilePath);
  return code;
}

/** A line for each step. What takes long is shown meanwhile: on a terminal with its seconds, elsewhere by one line. */
class Screen {
  #races;
  #age;
  #isTerminal = process.stdout.isTTY === true;
  #timer;

  constructor({ races, age }) {
    this.#races = races;
    this.#age = age;
  }

  begin(step) {
    const line = this.#line(step);
    if (this.#isTerminal) process.stdout.write(`  ${'…'.padEnd(10)}${line}`);
    let seconds = 0;
    this.#timer = setInterval(() => {
      seconds += 1;
      if (seconds < LONG_S) return;
      if (this.#isTerminal) process.stdout.write(`\r  ${`… ${seconds} s`.padEnd(10)}${line}`);
      else if (seconds === LONG_S) say(`  ${'…'.padEnd(10)}${line}`);
    }, 1_000);
    this.#timer.unref();
  }

  step({ step, finding, why }) {
    this.#clear();
    say(`  ${paint(finding, finding.padEnd(10))}${this.#line(step)}`);
    if (why) say(`            ${visible(why)}`);
  }

  end({ store, finding, refusal, clockOffset, clockError }, lockfilePath) {
    this.#clear();
    if (refusal) {
      if (MISSING_RIGHT.test(refusal.storeCode)) say(rightsFor(lockfilePath));
      say(`${paint(finding, 'The settings are wrong, so nothing was judged; see the step above')}: ${store}`);
      return;
    }
    if (clockOffset !== null) {
      const [ahead, far] = [clockOffset < 0 ? 'behind' : 'ahead of', Math.abs(clockOffset)];
      say(`The store's clock is ${far} ms ${ahead} this machine's, give or take ${clockError} ms. edgelect does not compare the two; members of other software may.`);
    }
    say(`${paint(finding, SENTENCES[finding])}${store ? `: ${store}` : ''}`);
  }

  #line(step) {
    const name = step === 'race' ? `race, ${this.#races} ${this.#races === 1 ? 'time' : 'times'}` : step;
    const later = step.endsWith(', later') ? ` after ${this.#age} s` : '';
    return `${name.padEnd(36)}${WHAT[step]}${later}`;
  }

  #clear() {
    clearInterval(this.#timer);
    if (this.#isTerminal) process.stdout.write('\r\u001b[2K');
  }
}

const SENTENCES = {
  holds: 'The store keeps its conditions',
  violated: 'Do not use this store for leases',
  unclear: 'It cannot be told; see the step above, and try again',
};

const MISSING_RIGHT = /^AccessDenied(Exception)?$/;

const rightsFor = (lockfilePath) =>
  `These credentials may not use ${lockfilePath}.probe-*, which is beside the lease ${lockfilePath}. If they are for another lease, name\n`
  + 'it by --lockfile-path; otherwise allow them what the step above asks for (docs/stores.md#permissions).';

const COLOURS = { holds: 'green', unclear: 'yellow', violated: 'red' };

function say(line) {
  process.stdout.write(`${line}\n`);
}

// hasColors() heeds NO_COLOR and TERM, and only a terminal has it.
function paint(finding, text) {
  return process.stdout.isTTY && process.stdout.hasColors?.() ? styleText(COLOURS[finding], text) : text;
}
