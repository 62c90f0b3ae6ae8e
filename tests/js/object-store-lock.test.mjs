// What users of the object-store lock know: its five calls over a storage, its options and callbacks, and a stop without a tombstone.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Elector, MemoryStorage, S3Storage, celeriant } from 'edgelect';
import { leaderElectionOptions, objectStoreLock } from 'edgelect/object-store-lock';
import { KEY, fired, isReleased, leading, leads, member, stopAll, within } from './group.mjs';

after(stopAll);

const record = (holderIdentity, renewTime = '2024-02-02T10:15:30.000Z') => ({
  holderIdentity, leaseDuration: '45s', acquireTime: '2024-02-02T10:15:30.000Z', renewTime, leaderTransitions: 0,
});

test('the lock creates once, updates on the etag it has seen, and says who it is', async () => {
  const storage = new MemoryStorage();
  const [a, b] = ['a', 'b'].map((identity) => objectStoreLock({ storage, key: 'ha/leader', identity }));
  assert.equal(await a.get(), null);
  const { etag } = await a.create(record('a'));
  await assert.rejects(b.create(record('b')), { code: 'EDGELECT_CONFLICT' });
  assert.deepEqual(await b.get(), { record: record('a'), etag });
  await a.update(etag, record('a', '2024-02-02T10:15:45.000Z'));
  await assert.rejects(b.update(etag, record('b')), { code: 'EDGELECT_CONFLICT' });
  assert.equal((await b.get()).record.renewTime, '2024-02-02T10:15:45.000Z');
  assert.deepEqual([a.identity(), a.describe()], ['a', 'ha/leader (a)']);
});

test('an object that is no record is named, and what is no storage, key or record is refused', async () => {
  const storage = new MemoryStorage();
  const lock = objectStoreLock({ storage, key: 'k', identity: 'a' });
  for (const body of ['[]', 'null', '{', '"x"', '\ud800']) {
    const { etag } = storage.get('k') ?? { etag: null };
    storage.putIfMatch('k', new TextEncoder().encode(body), etag);
    await assert.rejects(lock.get(), { code: 'EDGELECT_STORE' }, body);
  }
  const at = (storage, key, identity) => () => objectStoreLock({ storage, key, identity });
  for (const [field, make] of [['storage', at({}, 'k', 'a')], ['key', at(storage, '', 'a')], ['identity', at(storage, 'k')]]) {
    assert.throws(make, { code: 'EDGELECT_CONFIG', field });
  }
  await assert.rejects(lock.create('text'), { code: 'EDGELECT_CONFIG', field: 'record' });
  await assert.rejects(lock.update('', record('a')), { code: 'EDGELECT_CONFIG', field: 'oldEtag' });
});

test('what is no object of options is refused by name', () => {
  for (const [make, field] of [[objectStoreLock, 'options'], [leaderElectionOptions, 'options'], [celeriant, 'options']]) {
    for (const given of [null, 'text', 1, []]) {
      assert.throws(() => make(given), { name: 'EdgelectError', code: 'EDGELECT_CONFIG', field, message: /takes an object with/ }, String(given));
    }
  }
  for (const [config, field] of [[{ leaderCallbacks: null }, 'leaderCallbacks'], [{ onWarning: null }, 'onWarning']]) {
    assert.throws(() => leaderElectionOptions({ leaderKey: 'k', ...config }), { code: 'EDGELECT_CONFIG', field });
  }
  assert.throws(() => objectStoreLock(), { code: 'EDGELECT_CONFIG', field: 'storage' });
  assert.throws(() => celeriant(), { code: 'EDGELECT_CONFIG', field: 'cluster' });
  assert.deepEqual(leaderElectionOptions().leaderTimeout, 15_000);
});

test("the document's own configuration starts, capped at the fence, and says so", () => {
  const warnings = [];
  const config = {
    leaderKey: 'ha/leader', leaseDuration: '45s', renewDeadline: 'PT45S', retryPeriod: 15_000, holderIdentity: 'node-123',
    onWarning: (text) => warnings.push(text),
  };
  const elector = new Elector({ storage: new MemoryStorage(), ...leaderElectionOptions(config) });
  const { leaderTimeout, frequentInterval, margin, lockfilePath, serverId } = elector.config;
  assert.deepEqual({ leaderTimeout, frequentInterval, margin, lockfilePath, serverId }, {
    leaderTimeout: 45_000, frequentInterval: 15_000, margin: 4_500, lockfilePath: 'ha/leader', serverId: 'node-123',
  });
  assert.match(warnings.join(), /renewDeadline = 45000 ms is capped at 40500 ms/);
});

test('a shorter renewDeadline ends the authority earlier, and what cannot be kept is refused by name', () => {
  const options = leaderElectionOptions({ leaderKey: 'k', leaseDuration: '15s', renewDeadline: '10s', retryPeriod: '2s' });
  assert.equal(options.margin, 5_000);
  assert.equal(new Elector({ storage: new MemoryStorage(), ...options }).config.margin, 5_000);
  for (const [field, config] of [
    ['renewDeadline', { leaseDuration: '45s', renewDeadline: '20s' }],
    ['leaseDuration', { leaseDuration: '45 s' }],
    ['retryPeriod', { retryPeriod: -1 }],
    ['bucketName', { bucketName: 'b' }],
    ['leaderCallbacks.onStartLeading', { leaderCallbacks: { onStartLeading: 1 } }],
  ]) {
    assert.throws(() => leaderElectionOptions(config), { code: 'EDGELECT_CONFIG', field }, field);
  }
});

test('the three callbacks hear of the start, the stop and each new leader', async () => {
  const heard = [];
  const storage = new MemoryStorage();
  await member(storage).init();
  const leaderCallbacks = {
    onStartLeading: ({ token }) => heard.push(`start ${Number.isSafeInteger(token)}`),
    onStopLeading: ({ reason }) => heard.push(`stop ${reason}`),
    onNewLeader: (id) => heard.push(`leader ${id}`),
  };
  const options = leaderElectionOptions({ leaderKey: KEY, leaseDuration: '1s', retryPeriod: 250, holderIdentity: 'a', leaderCallbacks });
  const elector = member(storage, options);
  await elector.start();
  await leads(elector);
  await within(elector.stop());
  assert.deepEqual(heard, ['start true', 'leader a', 'stop stopped']);
});

const bodyOf = (storage) => storage.get(KEY).body;

test('without releaseOnCancel a stop ends the work, writes nothing, and leaves the lease to run out', async () => {
  const { elector, storage, losses, term } = await leading(leaderElectionOptions({ leaderKey: KEY, leaseDuration: '1s', retryPeriod: 250, releaseOnCancel: false }));
  let body;
  term.signal.addEventListener('abort', () => {
    body = bodyOf(storage);
  });
  await within(elector.stop());
  assert.ok(term.signal.aborted && !elector.isLeader() && term.remaining() === 0);
  assert.deepEqual(losses.map(({ reason }) => reason), ['stopped']);
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.deepEqual(bodyOf(storage), body);
  assert.ok(!isReleased(body));
  const other = member(storage, { serverId: 'b' });
  await other.start();
  const next = await within(other.waitForLeadership(), 10_000);
  assert.ok(next.token > term.token);
});

test('a stop that is told to leave the lease waits for the work, and one that is told to release it does', async () => {
  const { elector, storage } = await leading();
  let ended = false;
  const work = elector.lead(async ({ signal }) => {
    await fired(signal);
    await new Promise((resolve) => setTimeout(resolve, 100));
    ended = true;
  }).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 10));
  await within(elector.stop({ release: false }));
  assert.ok(ended && !isReleased(bodyOf(storage)));
  await within(work);
  const kept = await leading({ releaseOnStop: false });
  await within(kept.elector.stop({ release: true }));
  assert.ok(isReleased(bodyOf(kept.storage)));
  await assert.rejects(kept.elector.stop({ release: 'no' }), { code: 'EDGELECT_CONFIG', field: 'release' });
  assert.throws(() => member(storage, { releaseOnStop: 1 }), { code: 'EDGELECT_CONFIG', field: 'releaseOnStop' });
});

test('a stop without a release from within the work does not wait for itself', async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  const elector = member(storage, { releaseOnStop: false });
  await within(elector.lead(async () => {
    await elector.stop();
  }).catch((error) => assert.equal(error.code, 'EDGELECT_STOPPED')));
  assert.ok(!isReleased(bodyOf(storage)));
});

test('a stop without a release from within a callback ends the term that has just begun, once', async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  const losses = [];
  const elector = member(storage, {
    releaseOnStop: false,
    onAcquireLeadership: (term) => {
      void elector.stop();
      assert.ok(term.signal.aborted && term.remaining() === 0 && !elector.isLeader());
    },
    onLoseLeadership: ({ reason }) => losses.push(reason),
  });
  await elector.start();
  await assert.rejects(within(elector.waitForLeadership()), { code: 'EDGELECT_STOPPED' });
  assert.deepEqual([losses, elector.status().role, elector.status().error], [['stopped'], 'stopped', null]);
  const again = member(storage, { serverId: 'b' });
  await again.start();
  assert.ok((await within(again.waitForLeadership(), 10_000)).token > 0);
});

test('the format is refused by name where this wasm does not have it, and native is no other', async () => {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const refused = { code: 'EDGELECT_CONFIG', field: 'format', message: /must be native here; kubernetes is in edgelect\/aws/ };
  for (const format of ['kubernetes', 'yaml', 1]) {
    assert.throws(() => new S3Storage({ bucket: 'jobs', credentials, format }), refused, String(format));
  }
  assert.ok(new S3Storage({ bucket: 'jobs', credentials, format: 'native' }));
  const storage = Object.assign(new MemoryStorage(), { format: 'kubernetes' });
  await assert.rejects(member(storage).start(), refused);
  const native = Object.assign(new MemoryStorage(), { format: 'native' });
  await member(native).init();
  assert.ok(isReleased(bodyOf(native)));
});
