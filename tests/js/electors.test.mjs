// Many groups in one process, on virtual time: what they share, and that they fail one by one. What goes first, and how evenly, is held
// in tests/driver/electors.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atEnd } from './ending.mjs';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
const { Elector, Electors, MemoryStorage } = await import('edgelect');
const { Judgement } = await import('../../js/shared.js');
const { fired, isReleased, noting } = await import('./group.mjs');

/** A storage of many groups, each made by `init`. Its answers take so long. */
const storageOf = async (groups, { takesMs = 0 } = {}) => {
  const memory = new MemoryStorage();
  for (const lockfilePath of groups) await new Elector({ storage: memory, lockfilePath }).init();
  const seen = { underWay: 0, most: 0, writes: [] };
  const slow = async (work) => {
    seen.underWay += 1;
    seen.most = Math.max(seen.most, seen.underWay);
    if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
    seen.underWay -= 1;
    return work();
  };
  const storage = {
    get: (key) => slow(() => memory.get(key)),
    putIfMatch: (key, body, etag) => slow(() => {
      seen.writes.push({ key, released: isReleased(body) });
      return memory.putIfMatch(key, body, etag);
    }),
  };
  return { storage, seen, released: () => seen.writes.filter(({ released }) => released).map(({ key }) => key).sort() };
};

const electorsOf = (options) => {
  const electors = new Electors({ serverId: 'a', warn: false, ...options });
  atEnd(() => runtime.passing(electors.stop()));
  return electors;
};

const namesOf = (count) => Array.from({ length: count }, (_, index) => `tenants/${index}`);

/** Has each group lead until the end; resolves to the groups that have led, and counts their terms. */
const leadAll = (electors, names) => {
  const led = [];
  const work = (name) => ({ signal }) => {
    led.push(name);
    return fired(signal);
  };
  for (const name of names) electors.add(name).lead(work(name)).catch(() => {});
  return led;
};

/** Groups that have all had time to lead. */
const allLead = async (names, { takesMs, ...options } = {}) => {
  const { storage, ...store } = await storageOf(names, { takesMs });
  const [electors, before] = [electorsOf({ storage, ...options }), runtime.timers()];
  const led = leadAll(electors, names);
  await runtime.pass(30_000);
  return { ...store, electors, before, led };
};

test('five hundred groups share one timer and the connections', async () => {
  const names = namesOf(500);
  const { electors, seen, released, before, led } = await allLead(names, { takesMs: 30, maxConnections: 8 });
  assert.deepEqual([...led].sort(), [...names].sort(), 'each leads, in one term');
  assert.ok(seen.most <= 8 && seen.most >= 6, `${seen.most} at once`);
  // One for all groups; and the storage has its own.
  assert.ok(runtime.timers() - before <= 1 + seen.underWay, `${runtime.timers() - before} timers`);
  const { groups, underWay, waiting } = electors.status();
  assert.equal(groups.filter(({ role }) => role === 'leader').length, 500);
  assert.ok(underWay <= 8 && waiting < 50, `${underWay} and ${waiting}`);
  await runtime.passing(electors.stop());
  assert.equal(runtime.timers(), before, 'nothing is left');
  assert.equal(released().length, 500, 'each lease is released, and none of the writes had to be repeated');
});

test('one store is judged once, by the first group that asks', async () => {
  const { seen, led } = await allLead(namesOf(20), { probe: true });
  assert.equal(led.length, 20);
  assert.equal(new Set(seen.writes.map(({ key }) => key).filter((key) => key.includes('.probe-'))).size, 1);
});

test('the first group that can judges the store, and none waits for one that judges nothing', () => {
  const [judgement, begun] = [new Judgement(), []];
  const join = (name, judges) => judgement.join(null, (own) => begun.push([name, own]) && own !== false && judges, () => {});
  const groups = [join('tick', false), join('first', true), join('second tick', false), join('second', true), join('third', true)];
  for (const group of groups) group.start();
  assert.deepEqual(begun.splice(0), [['tick', null], ['first', null]]);
  groups[1].judged({ made: false });
  assert.deepEqual(begun.splice(0), [['second tick', null], ['second', null]], 'it was told to stop');
  groups[3].judged({ made: true });
  join('fourth', true).start();
  assert.deepEqual(begun.splice(0), [['third', false], ['fourth', false]]);
});

test('a group that is removed while it judges the store leaves that to the next one', async () => {
  const [first, second] = namesOf(2);
  const { storage } = await storageOf([first, second], { takesMs: 20 });
  const putIfMatch = async (key, body) => storage.putIfMatch(key, body, (await storage.get(key))?.etag ?? null);
  const electors = electorsOf({ storage: { ...storage, putIfMatch }, probe: true });
  leadAll(electors, [first]);
  const refused = assert.rejects(electors.add(second).start(), { code: 'EDGELECT_STORE' });
  await runtime.pass(30);
  void electors.remove(first);
  await runtime.pass(20_000);
  await refused;
});

test('a group that fails is told by its name, and the others go on', async () => {
  const names = namesOf(10);
  const { storage } = await storageOf(names);
  const heard = [];
  const broken = { ...storage, get: (key) => (key === names[3] ? Promise.reject(new Error('no disk')) : storage.get(key)) };
  const electors = electorsOf({ storage: broken, onError: (error, group) => heard.push([group, error.message]) });
  const led = leadAll(electors, names);
  await runtime.pass(60_000);
  assert.deepEqual([...led].sort(), names.filter((name) => name !== names[3]));
  assert.ok(heard.length > 0 && heard.every(([group, text]) => group === names[3] && text.includes('no disk')), JSON.stringify(heard));
  const status = electors.status().groups.find(({ group }) => group === names[3]);
  assert.ok(status.error.includes('no disk'), status.error);
});

test('public questions about hundreds of groups, and over many storages, read each record once an interval', async () => {
  const names = namesOf(300);
  const { storage } = await storageOf(names);
  let reads = 0;
  const counting = noting(storage, (call) => (reads += call === 'get'));
  const electors = electorsOf({ storage: counting });
  for (const name of names) electors.add(name);
  const others = namesOf(20).map(() => new Elector({ storage: { ...counting }, serverId: 'a', warn: false, lockfilePath: names[0] }));
  const askAll = async () => {
    for (const elector of [...electors, ...others]) {
      const asked = elector.handleRequest(new Request('http://localhost/health/leadership'));
      // No time passes, so that all of it is within one interval.
      await runtime.settle();
      const answer = await asked;
      assert.equal(answer.status, 404, 'it is released');
    }
  };
  for (let round = 0; round < 3; round += 1) await askAll();
  assert.equal(reads, 320);
  await runtime.pass(6_000);
  await askAll();
  assert.equal(reads, 640);
});

test('all groups together hold a thousand questions and answer the next at once', async () => {
  const names = namesOf(2);
  const { electors } = await allLead(names, { peerMode: true, serverAddr: 'a.example' });
  const askers = [];
  const answers = [];
  const ask = (name, older = 0) => {
    const query = `group=${name}&term=${electors.get(name).status().term - older}&wait=20000`;
    const asker = new AbortController();
    askers.push(asker);
    const asked = electors.handleRequest({ method: 'GET', url: `/health/leadership?${query}`, signal: asker.signal });
    void asked.then((answer) => answers.push([answer.status, Number(answer.headers.get('retry-after'))]));
  };
  for (let round = 0; round < 600; round += 1) names.forEach((name) => ask(name));
  ask(names[1], 1);
  await runtime.settle();
  const refused = answers.filter(([status]) => status === 503);
  assert.equal(refused.length, 200, 'the next are sent to the store');
  assert.ok(refused.every(([, seconds]) => seconds >= 15 && seconds <= 22), 'for a lease and up to a half more');
  assert.deepEqual(answers.filter(([status]) => status !== 503), [[200, 0]], 'news are told');
  electors.get(names[0]).updateConfig({ maxPeers: 1_001 });
  ask(names[1]);
  await runtime.settle();
  assert.equal(answers.length, 201, 'as many are held as one group may hold');
  askers.slice(0, 10).forEach((asker) => asker.abort());
  await runtime.settle();
  answers.length = 0;
  for (let round = 0; round < 12; round += 1) ask(names[1]);
  await runtime.settle();
  assert.deepEqual(answers.map(([status]) => status), [503, 503], 'who goes makes room');
  await runtime.pass(21_000);
});

test('a group can be removed and added again, and answers by its name', async () => {
  const [name, other] = namesOf(2);
  const { electors } = await allLead([name, other]);
  const ask = async (path) => {
    const answer = await electors.handleRequest(new Request(`http://localhost${path}`));
    return [answer.status, await answer.json()];
  };
  assert.equal((await ask(`/health/leadership?group=${name}`))[0], 200);
  assert.equal((await ask('/health/leadership'))[0], 400, 'there are two');
  assert.equal((await ask('/health/leadership?group=none'))[0], 404);
  assert.equal((await ask(`/status.json?group=${other}`))[1].group, other);
  const [, all] = await ask('/status.json');
  assert.deepEqual(all.groups.map(({ group }) => group), [name, other]);
  assert.ok(all.groups.every((shown) => !('session' in shown)));
  assert.equal(await runtime.passing(electors.remove(name)), true);
  assert.deepEqual([electors.size, electors.get(name), await electors.remove(name)], [1, undefined, false]);
  const led = leadAll(electors, [name]);
  await runtime.pass(10_000);
  assert.deepEqual(led, [name]);
});

test('a group that is added again claims nothing while its old work goes on', async () => {
  const [name] = namesOf(1);
  const { storage } = await storageOf([name]);
  const electors = electorsOf({ storage });
  let [running, most] = [0, 0];
  const deaf = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 90_000));
    running -= 1;
  };
  electors.add(name).lead(deaf).catch(() => {});
  await runtime.pass(5_000);
  assert.equal(running, 1);
  await runtime.passing(electors.remove(name));
  const again = electors.add(name);
  again.lead(deaf).catch(() => {});
  await runtime.pass(30_000);
  assert.deepEqual([running, again.status().waiting.reason], [1, 'work']);
  await runtime.pass(90_000);
  assert.deepEqual([running, most, again.isLeader()], [1, 1, true]);
});

test('groups that the limits cannot hold, and options that are the same for all, are refused by name', async () => {
  const storage = new MemoryStorage();
  const code = 'EDGELECT_CONFIG';
  const electors = new Electors({ storage, maxRequestsPerSecond: 1 });
  namesOf(5).forEach((name) => electors.add(name));
  assert.throws(() => electors.add('a'), { code, field: 'maxRequestsPerSecond', message: /6 groups send 2 requests a second/ });
  assert.throws(() => electors.add('tenants/0'), { code, field: 'lockfilePath', message: /is there already/ });
  assert.throws(() => electors.add({ lockfilePath: 'b', storage }), { code, field: 'storage', message: /one for all/ });
  assert.throws(() => electors.add({}), { code, field: 'lockfilePath' });
  const slower = electors.add.bind(electors, { lockfilePath: 'b', frequentInterval: 9_000, leaderTimeout: 60_000 });
  assert.throws(slower, { field: 'maxRequestsPerSecond' }, 'the rate is used up');
  const one = electors.get('tenants/0');
  assert.throws(() => one.updateConfig({ frequentInterval: 4_000 }), { code, field: 'maxRequestsPerSecond', message: /5 groups send 2 requests/ });
  assert.equal(one.config.frequentInterval, 5_000, 'what is refused changes nothing');
  one.updateConfig({ frequentInterval: 10_000, leaderTimeout: 60_000 });
  assert.throws(slower, { field: 'maxRequestsPerSecond' }, 'it made room for a tenth of a request');
  electors.add({ lockfilePath: 'b', frequentInterval: 10_000, leaderTimeout: 60_000 });
});

test('an option of a group that is undefined or null is the one of all groups', async () => {
  const heard = [];
  const electors = electorsOf({ storage: new MemoryStorage(), leaderTimeout: 30_000, onStatus: (_status, group) => heard.push(group) });
  for (const [lockfilePath, nothing] of [['one', undefined], ['two', null]]) {
    const elector = electors.add({ lockfilePath, leaderTimeout: nothing, serverId: nothing, onStatus: nothing });
    assert.deepEqual([elector.config.leaderTimeout, elector.config.serverId], [30_000, 'a'], String(nothing));
    await runtime.passing(elector.start());
  }
  assert.deepEqual([...new Set(heard)], ['one', 'two']);
});

test('callbacks of a class instance are heard, whether it is of all groups or of one', async () => {
  const heard = [];
  class Told {
    lockfilePath = 'one';

    onError(_error, group = 'its own') {
      heard.push([this.lockfilePath, group]);
    }
  }
  const storage = { get: () => Promise.reject(new Error('no disk')), putIfMatch: () => Promise.reject(new Error('no disk')) };
  const electors = new Electors(Object.assign(new Told(), { storage, serverId: 'a', lockfilePath: undefined }));
  atEnd(() => runtime.passing(electors.stop()));
  for (const group of [new Told(), 'two']) void electors.add(group).start().catch(() => {});
  await runtime.pass(20_000);
  assert.deepEqual(heard, [['one', 'its own'], [undefined, 'two']]);
});

test('a stop from within a callback of any group waits for nobody, and every lease is released', async () => {
  const names = namesOf(3);
  const { storage, released } = await storageOf(names);
  let [leading, took] = [0];
  const onAcquireLeadership = async (term) => {
    leading += 1;
    if (leading < names.length) return;
    const beganMs = performance.now();
    await electors.stop();
    took = [performance.now() - beganMs, term.signal.aborted];
  };
  const electors = electorsOf({ storage, onAcquireLeadership });
  for (const name of names) electors.add(name).start().catch(() => {});
  await runtime.pass(10_000);
  assert.deepEqual([took, released()], [[0, true], names]);
});

test('the signal of a stop ends the waiting for those whose turn has not come, and each lease is released in its turn', async () => {
  const { electors, released } = await allLead(namesOf(4), { maxRequestsPerSecond: 1 });
  const ending = new AbortController();
  const stopped = electors.stop({ signal: ending.signal }).catch(({ message }) => [message, performance.now()]);
  await runtime.pass(100);
  const abortedMs = performance.now();
  ending.abort(new Error('enough'));
  await runtime.pass(60_000);
  assert.deepEqual(await stopped, ['enough', abortedMs]);
  assert.equal(released().length, 4);
});

test('a stop with a wrong option stops all groups, and then says so', async () => {
  const { electors, released } = await allLead(namesOf(3));
  await assert.rejects(runtime.passing(electors.stop({ signal: 7 })), { code: 'EDGELECT_CONFIG', field: 'signal' });
  assert.equal(released().length, 3);
  await assert.rejects(runtime.passing(electors.remove('tenants/0', { parked: true })), { code: 'EDGELECT_CONFIG', field: 'parked' });
  assert.equal(electors.size, 2, 'it is stopped and taken off');
  await assert.rejects(electorsOf({ storage: new MemoryStorage() }).stop({ relase: false }), { code: 'EDGELECT_CONFIG', field: 'relase' });
  const leading = await allLead(namesOf(2));
  const options = { get park() { throw new RangeError('no park'); } };
  await assert.rejects(runtime.passing(leading.electors.stop(options)), { message: 'no park' });
  assert.equal(leading.released().length, 2);
});

test('work that was there when all of them were stopped ends, though somebody leads once more meanwhile', async () => {
  const names = namesOf(3);
  const { storage } = await storageOf(names);
  const electors = electorsOf({ storage });
  const led = leadAll(electors, names);
  await runtime.pass(10_000);
  const last = Math.max(...names.map((name) => electors.get(name).status().term));
  const stopping = electors.stop();
  const more = names.map((name) => electors.get(name).lead(({ token }) => token));
  const tokens = await runtime.passing(Promise.all(more));
  await runtime.passing(stopping);
  assert.ok(tokens.every((token) => token > last), `${tokens} after ${last}`);
  assert.deepEqual([led.length, names.map((name) => electors.get(name).status().role)], [3, Array(3).fill('stopped')]);
});

test('a stop of all with a wrong option from within the work rejects once', async () => {
  const names = namesOf(3);
  const { storage } = await storageOf(names);
  const electors = electorsOf({ storage });
  let wrong;
  for (const name of names.slice(1)) void electors.add(name).start();
  await runtime.pass(10_000);
  await runtime.passing(electors.add(names[0]).lead(() => {
    wrong = electors.stop({ relase: false }).catch(({ code }) => code);
  }).catch(() => {}));
  assert.equal(await runtime.passing(wrong), 'EDGELECT_CONFIG');
  await runtime.pass(10_000);
});

test('a group that was removed begins nothing out of sight', async () => {
  const { storage } = await storageOf(['a']);
  const electors = electorsOf({ storage });
  const elector = electors.add('a');
  const removed = runtime.passing(electors.remove('a'));
  for (const call of [() => elector.start(), () => elector.lead(() => {}), () => elector.runScheduled(1, () => {})]) {
    await assert.rejects(runtime.passing(call()), { code: 'EDGELECT_STOPPED', message: /removed from its Electors/ });
  }
  assert.equal(await removed, true);
  assert.equal(await runtime.passing(electors.add('a').lead(() => 'led')), 'led');
  const again = electors.get('a');
  void again.start();
  await runtime.pass(10_000);
  await assert.rejects(electors.remove('a', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(await runtime.passing(again.lead(() => 'led')), 'led', 'it is still there');
});

test('a group that is started after the stop of all of them goes on', async () => {
  const names = namesOf(3);
  const { storage } = await storageOf(names);
  const electors = electorsOf({ storage });
  for (const name of names) void electors.add(name).start();
  await runtime.pass(10_000);
  const both = Promise.all([electors.stop(), ...names.map((name) => electors.get(name).start())]);
  await runtime.passing(both);
  await runtime.pass(10_000);
  assert.deepEqual(names.map((name) => electors.get(name).isLeader()), [true, true, true]);
  const stopping = electors.stop();
  const refused = names.map((name) => electors.get(name).start({ signal: AbortSignal.abort() }).catch(({ name: what }) => what));
  await runtime.passing(stopping);
  assert.deepEqual([await Promise.all(refused), names.map((name) => electors.get(name).status().role)], [Array(3).fill('AbortError'), Array(3).fill('stopped')]);
});
