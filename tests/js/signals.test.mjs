// What a process does when it is told to end: the work stops first, then the lease is released.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MemoryStorage } from 'edgelect';
import { start } from './example.mjs';
import { member, newGroup, slotRecord } from './group.mjs';

const PROGRAM = `
import { Elector, MemoryStorage } from 'edgelect';
const say = (event, more) => console.log(JSON.stringify({ event, ...more }));
const storage = new MemoryStorage();
const elector = new Elector({ storage, lockfilePath: 'a', leaderTimeout: 2000 });
await elector.init();
elector.stopOnSignals();
const fail = () => { throw new Error('no report'); };
const stopped = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
const isReleased = (key = 'a') => new TextDecoder().decode(storage.get(key).body).includes('0001-01-01');
`;
const LEADS = `
let under;
await elector.lead(async ({ signal }) => {
  say('works');
  await stopped(signal);
  under = isReleased();
});
say('ends', { under, released: isReleased() });
`;
const TWICE = `
await elector.lead(async ({ signal }) => {
  say('works');
  await stopped(signal);
  process.kill(process.pid, 'SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 100));
});
say('ends', { released: isReleased() });
`;
const THROWS = `
const led = await elector.lead(({ signal }) => {
  say('works');
  return stopped(signal).then(fail);
});
say('ends', { led: led ?? null, released: isReleased() });
`;
/** Work whose term has run out when the signal comes. */
const late = (ends) => `
const led = await elector.lead(() => {
  const endMs = performance.now() + 2_100;
  while (performance.now() < endMs);
  process.emit('SIGTERM');
  ${ends};
});
say('ends', { led: led ?? null });
`;
const FAILS = `
const failed = await elector.lead(fail).catch(({ message }) => message);
const ended = elector.lead(async ({ signal }) => {
  elector.stop();
  signal.throwIfAborted();
}).catch(({ code }) => code);
say('ends', { failed: [failed, await ended] });
`;
const IGNORES = `
await elector.lead(() => {
  say('works');
  return new Promise((resolve) => setTimeout(resolve, 60_000));
});
`;
const SLOT = `
const record = ${JSON.stringify(slotRecord(Date.now() - 60_000))};
storage.putIfMatch('a', new TextEncoder().encode(JSON.stringify(record)), storage.get('a').etag);
const { outcome } = await elector.runScheduled(Date.now() - 1_000, async ({ signal }) => {
  say('works');
  await stopped(signal);
  throw signal.reason;
});
say('ends', { outcome, released: isReleased() });
`;

const EARLY = `
process.emit('SIGTERM');
const led = await elector.lead(() => say('works'));
const refused = await Promise.all([elector.start(), elector.runScheduled(Date.now(), () => say('works'))].map((one) => one.catch(({ code }) => code)));
say('ends', { led: led ?? null, refused });
`;
const FOLLOWS = `
const other = new Elector({ storage, lockfilePath: 'a', serverId: 'other' });
await other.start();
await other.waitForLeadership();
setTimeout(() => say('works'), 300);
const led = await elector.lead(() => 'led');
await other.stop();
say('ends', { led: led ?? null });
`;
const GROUPS = `
import { Electors } from 'edgelect';
const names = ['x', 'y', 'z'];
for (const lockfilePath of names) await new Elector({ storage, lockfilePath }).init();
const electors = new Electors({ storage, unref: true, maxRequestsPerSecond: 2 });
const keeps = setInterval(() => {}, 1_000);
await Promise.all(names.map(async (name) => {
  const own = electors.add(name);
  await own.start();
  await own.waitForLeadership();
}));
clearInterval(keeps);
process.on('exit', () => say('ends', { released: names.filter((name) => isReleased(name)) }));
await electors.stop();
`;

const THREAD = `
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
const text = "import('edgelect').then(({ Elector, MemoryStorage }) => new Elector({ storage: new MemoryStorage(), lockfilePath: 'a' }).stopOnSignals())";
const [{ code, field }] = await once(new Worker(text, { eval: true }), 'error');
say('ends', { refused: [code, field] });
`;

const begun = (program) => start(['--input-type=module', '-e', PROGRAM + program]);

/** Each with its program, the signal that it is sent once it works, and what it says in the end. */
const ENDS_WELL = {
  'SIGTERM stops the work, then releases the lease': [LEADS, 'SIGTERM', { under: false, released: true }],
  'a SIGINT of the terminal that npm passes on as well is one': [TWICE, 'SIGINT', { released: true }],
  'SIGINT stops the work, then releases the lease': [LEADS, 'SIGINT', { under: false, released: true }],
  'work that throws at SIGTERM': [THROWS, 'SIGTERM', { led: null, released: true }],
  'work that returns, whose term was lost before the signal came': [late("return 'too late'"), undefined, { led: null }],
  'work that throws, whose term was lost before the signal came': [late('fail()'), undefined, { led: null }],
  'what work throws is an error where no signal came': [FAILS, undefined, { failed: ['no report', 'EDGELECT_LOST'] }],
  'a signal ends the job of a slot, and the lease is released': [SLOT, 'SIGTERM', { outcome: 'lost', released: true }],
  'a signal before anything was begun is remembered': [EARLY, undefined, { led: null, refused: ['EDGELECT_STOPPED', 'EDGELECT_STOPPED'] }],
  'a member that waits for its turn ends at a signal': [FOLLOWS, 'SIGTERM', { led: null }],
  'a thread, which no signal reaches, cannot wait for one': [THREAD, undefined, { refused: ['EDGELECT_CONFIG', 'signals'] }],
  'groups that keep no process alive are released one after another': [GROUPS, undefined, { released: ['x', 'y', 'z'] }],
};

// Most of it is the start of a process.
describe('a process ends well', { concurrency: 2 }, () => {
  for (const [name, [program, signal, said]] of Object.entries(ENDS_WELL)) {
    test(name, async () => {
      const { child, all, next, ended } = begun(program);
      if (signal) {
        await next('works');
        child.kill(signal);
      }
      assert.deepEqual([await ended, child.signalCode], [0, null]);
      assert.deepEqual(await next('ends'), { event: 'ends', ...said });
      assert.equal(all('works').length, signal ? 1 : 0);
    });
  }
});

test('a second signal ends a process whose work does not stop', async () => {
  const { child, next, ended } = begun(IGNORES);
  await next('works');
  child.kill('SIGTERM');
  // The first one has to be heard before, and what comes within half a second is its twin.
  for (let tries = 0; child.signalCode === null && tries < 60; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 750));
    child.kill('SIGTERM');
  }
  await ended;
  assert.equal(child.signalCode, 'SIGTERM');
});

test('many electors of one process wait for a signal by one listener', async () => {
  const before = process.listenerCount('SIGUSR2');
  const electors = Array.from({ length: 20 }, () => member(new MemoryStorage()));
  const forget = electors.map((elector) => elector.stopOnSignals(['SIGUSR2']));
  assert.equal(process.listenerCount('SIGUSR2'), before + 1);
  forget.slice(1).forEach((one) => one());
  process.emit('SIGUSR2');
  await assert.rejects(electors[0].start(), { code: 'EDGELECT_STOPPED' });
  await electors[1].start();
  await electors[1].stop();
});

test('a listener that takes it back in the same signal, or all listeners, breaks nothing', async () => {
  const elector = member(new MemoryStorage());
  let forget = () => {};
  process.once('SIGUSR2', () => forget());
  forget = elector.stopOnSignals(['SIGUSR2']);
  process.emit('SIGUSR2');
  await elector.start();
  await elector.stop();
  elector.stopOnSignals(['SIGUSR2']);
  process.removeAllListeners('SIGUSR2');
  const other = member(new MemoryStorage());
  const last = other.stopOnSignals(['SIGUSR2']);
  assert.equal(process.listenerCount('SIGUSR2'), 1);
  last();
  process.removeAllListeners('SIGUSR2');
});

test('signals of which one can never come, or that nobody can catch, are refused, and no listener is left', async () => {
  const before = process.listenerCount('SIGTERM');
  const elector = member(await newGroup());
  for (const signals of [['SIGTERM', 'SIGKILL'], ['SIGTREM'], [], [['SIGTERM']], new Array(1), 'SIGTERM']) {
    assert.throws(() => elector.stopOnSignals(signals), { code: 'EDGELECT_CONFIG', field: 'signals' }, String(signals));
  }
  assert.equal(process.listenerCount('SIGTERM'), before);
  elector.stopOnSignals(['SIGHUP', 'SIGUSR2'])();
});
