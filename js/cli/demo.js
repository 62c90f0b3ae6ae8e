// `edgelect demo`: threads elect one leader over a store in memory; one crashes, one resigns, one writes too late.
import { styleText } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Rules } from '../demo/rules.mjs';
import { PlainCommand } from './command.js';

const LEASE_MS = 1_000;
const NAMES = ['member-1', 'member-2', 'member-3'];
const OPTIONS = { lockfilePath: 'demo/leader.json', leaderTimeout: LEASE_MS, frequentInterval: 200, follow: 'tight', storeSkew: 0 };
const PAUSE_MS = 300;
// The followers have seen the leader renew by then, as they would have in a group that runs for long.
const SETTLE_MS = 500;
const STEP_LIMIT_MS = 10_000;

export const demo = ({ readme }) => new PlainCommand('demo')
  .description('show three members electing one leader, in memory')
  .addHelpText('after', `
Each member is a thread with an elector of its own, so that ending the thread is
a crash like any other. The store is in memory, the lease is ${LEASE_MS / 1000} s, and all of it
takes less than five seconds. Exit code: 0, or 1 where a rule was broken.`)
  .action(async () => {
    process.exitCode = await new Demo().run(readme);
  });

class Demo {
  #rules = new Rules({ failoverLimitMs: 3 * LEASE_MS });
  #ledger = new Ledger();
  #members = new Map();
  #store;
  /** Terms that ended, and those that the story has told. */
  #lost = new Set();
  #told = new Set();
  #changed = () => {};
  #broken;

  /** Resolves to the exit code. */
  async run(readme) {
    say(`edgelect demo: three threads elect one leader over a store in memory. The lease is ${LEASE_MS / 1000} s.`);
    const { Elector, MemoryStorage } = await import('edgelect');
    this.#store = new MemoryStorage();
    // Nobody else can be leading in a store that is new, so the first leader need not wait for a lease to run out.
    await new Elector({ ...OPTIONS, storage: this.#store }).init();
    for (const name of NAMES) this.#members.set(name, this.#start(name));
    try {
      await this.#story();
    } catch (error) {
      this.#rules.broken.push(error.message);
    } finally {
      await Promise.all([...this.#members.values()].map((thread) => thread.terminate()));
    }
    return this.#summary(readme);
  }

  async #story() {
    await this.#work(await this.#leader());
    await pause(SETTLE_MS);

    const crashed = await this.#leader();
    const crashMs = Date.now();
    await this.#members.get(crashed.member).terminate();
    this.#rules.ended(crashed.member, Date.now());
    this.#lost.add(crashed.term);
    tell('crash', crashed.member, 'crashes: its thread is ended, nothing is released');
    await this.#work(await this.#takesOver('the crash', crashMs));
    await pause(PAUSE_MS);

    const resigned = await this.#leader();
    const resignMs = Date.now();
    this.#members.get(resigned.member).postMessage({ command: 'resign' });
    tell('resigns', resigned.member, 'resigns: its authority ends, the lease is released');
    await this.#work(await this.#takesOver('the resignation', resignMs));

    const late = await this.#write(resigned);
    if (late.accepted) throw new Error(`a write with token ${resigned.term} was accepted after one with token ${late.highest}`);
    tell('refused', resigned.member, `writes late, with token ${resigned.term}: refused, ${late.highest} has written since`);
  }

  /** Who leads now; told where it is news, as after a lease that ran out because the machine was too busy to renew. */
  async #leader() {
    const { member, term } = await this.#until(() => this.#rules.acquisitions.findLast((one) => !this.#lost.has(one.term)), 'a leader');
    if (!this.#told.has(term)) tell('leads', member, `leads, with fencing token ${term}`);
    this.#told.add(term);
    return { member, term };
  }

  async #takesOver(what, sinceMs) {
    const next = await this.#until(() => this.#rules.acquisitions.find(({ atMs }) => atMs > sinceMs), `a new leader after ${what}`);
    const tookMs = next.atMs - sinceMs;
    this.#rules.failover(what, tookMs);
    this.#told.add(next.term);
    tell('leads', next.member, `takes over ${tookMs} ms after ${what} (${(tookMs / LEASE_MS).toFixed(1)} leases), with token ${next.term}`);
    return next;
  }

  async #work(acquisition) {
    const { accepted } = await this.#write(acquisition);
    const { member, term } = acquisition;
    if (!accepted) throw new Error(`the write of ${member} was refused although it leads with token ${term}`);
    tell('writes', member, `writes to the ledger with token ${term}: accepted`);
  }

  /** Lets a member write with the token of this term, whether it leads or not: `{ accepted, highest }`. */
  #write({ member, term }) {
    this.#members.get(member).postMessage({ command: 'write', token: term });
    return this.#until(() => this.#ledger.answers.shift(), `the write of ${member}`);
  }

  #start(name) {
    const thread = new Worker(new URL('./demo-member.js', import.meta.url), { workerData: { ...OPTIONS, serverId: name } });
    thread.on('message', (message) => this.#hear(name, thread, message));
    thread.on('error', (error) => {
      this.#broken = new Error(`${name} broke down: ${error.message}`);
      this.#changed();
    });
    return thread;
  }

  #hear(member, thread, { event, ask, args, ...more }) {
    if (event === 'acquired') this.#rules.acquired({ member, ...more });
    if (event === 'proven') this.#rules.proven({ member, ...more });
    if (event === 'lost') {
      this.#rules.ended(member, more.atMs);
      this.#lost.add(more.term);
    }
    if (event === 'get' || event === 'putIfMatch') thread.postMessage({ ask, answer: this.#store[event](...args) });
    if (event === 'write') this.#ledger.write(more.token);
    this.#changed();
  }

  async #until(condition, what) {
    const deadlineMs = Date.now() + STEP_LIMIT_MS;
    for (;;) {
      const found = condition();
      if (found) return found;
      if (this.#broken) throw this.#broken;
      const leftMs = deadlineMs - Date.now();
      if (leftMs <= 0) throw new Error(`waited ${STEP_LIMIT_MS / 1000} s for ${what}`);
      let timer;
      await new Promise((resolve) => {
        this.#changed = resolve;
        timer = setTimeout(resolve, leftMs);
      });
      clearTimeout(timer);
    }
  }

  #summary(readme) {
    const { acquisitions, broken } = this.#rules;
    say('');
    for (const sentence of broken) say(`${paint('red', 'BROKEN')}: ${sentence}`);
    if (broken.length > 0) return 1;
    say(`${acquisitions.length} terms. Tokens only grew, never did two members lead at once, and the old token was refused.`);
    say('');
    say('In your own program, over a bucket (any S3-compatible store that honours conditional writes):');
    say("  import { Elector, S3Storage } from 'edgelect';");
    say("  const elector = new Elector({ storage: new S3Storage({ … }), lockfilePath: 'leader/report.json' });");
    say('  await elector.lead(async (term) => writeReport({ token: term.token, signal: term.signal }));');
    say(`Read on: ${readme}`);
    return 0;
  }
}

/** What the leader changes. It looks at nothing but the token, and that is enough. */
class Ledger {
  /** What became of each write: `{ accepted, highest }`. */
  answers = [];
  #highest = 0;

  write(token) {
    const accepted = token >= this.#highest;
    this.#highest = Math.max(this.#highest, token);
    this.answers.push({ accepted, highest: this.#highest });
  }
}

const COLOURS = { leads: 'green', crash: 'red', resigns: 'yellow', writes: 'dim', refused: 'cyan' };

function tell(kind, member, text) {
  const atS = (performance.now() / 1000).toFixed(1).padStart(5);
  say(`${atS} s  ${paint(COLOURS[kind], `${member} ${text}`)}`);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

// hasColors() heeds NO_COLOR and TERM, and only a terminal has it.
function paint(colour, text) {
  return process.stdout.isTTY && process.stdout.hasColors?.() ? styleText(colour, text) : text;
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
