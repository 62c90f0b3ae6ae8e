// `edgelect demo`: threads elect one leader over a store in memory; one crashes, one resigns, one writes too late.
import { styleText } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Command } from 'commander';
import { Rules } from '../demo/rules.mjs';

const LEASE_MS = 1_000;
const NAMES = ['member-1', 'member-2', 'member-3'];
const OPTIONS = { lockfilePath: 'demo/leader.json', leaderTimeout: LEASE_MS, frequentInterval: 200, follow: 'tight', storeSkew: 0 };
const PAUSE_MS = 300;
// The followers have seen the leader renew by then, as they would have in a group that runs for long.
const SETTLE_MS = 500;
const STEP_LIMIT_MS = 10_000;

export const demo = ({ readme }) => new Command('demo')
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
    const first = await this.#leader(0);
    tell('leads', first.member, `leads, with fencing token ${first.term}`);
    await this.#work(first);
    await pause(SETTLE_MS);

    const crashMs = Date.now();
    await this.#members.get(first.member).terminate();
    this.#rules.ended(first.member, Date.now());
    tell('crash', first.member, 'crashes: its thread is ended, nothing is released');
    const second = await this.#takesOver(first, 'the crash', crashMs);
    await this.#work(second);
    await pause(PAUSE_MS);

    const resignMs = Date.now();
    this.#members.get(second.member).postMessage({ command: 'resign' });
    tell('resigns', second.member, 'resigns: its authority ends, the lease is released');
    const third = await this.#takesOver(second, 'the resignation', resignMs);
    await this.#work(third);

    const late = await this.#write(second);
    if (late.accepted) throw new Error(`a write with token ${second.term} was accepted after one with token ${late.highest}`);
    tell('refused', second.member, `writes late, with token ${second.term}: refused, ${late.highest} has written since`);
  }

  async #takesOver(before, what, sinceMs) {
    const next = await this.#leader(this.#rules.acquisitions.indexOf(before) + 1);
    const tookMs = next.atMs - sinceMs;
    this.#rules.failover(what, tookMs);
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

  #leader(index) {
    return this.#until(() => this.#rules.acquisitions[index], 'a leader');
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
    if (event === 'lost') this.#rules.ended(member, more.atMs);
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
