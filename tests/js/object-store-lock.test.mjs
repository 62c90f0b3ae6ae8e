// What users of the object-store lock know: its five calls over a storage, its options and callbacks, and a stop without a tombstone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, EpochStorage, MemoryStorage, S3Storage } from 'edgelect';
import { leaderElectionOptions, objectStoreLock } from 'edgelect/object-store-lock';
import { bucketOptions, freshKey, getObject, putObject, until } from './bucket.mjs';
import { run } from './example.mjs';
import { KEY, fired, isReleased, leading, member, newGroup, pause, started, within } from './group.mjs';
import { kept, startLiar } from './servers.mjs';

const record = (holderIdentity, more) => ({
  holderIdentity, leaseDuration: '45s', acquireTime: '2024-02-02T10:15:30.000Z', renewTime: '2024-02-02T10:15:30.000Z',
  leaderTransitions: 0, ...more,
});
const over = (storage, key, identity = 'a') => objectStoreLock({ storage, key, identity });
const kubernetes = () => new S3Storage({ ...bucketOptions, format: 'kubernetes' });

for (const [name, storage] of Object.entries({
  'a MemoryStorage': new MemoryStorage(), 'an S3Storage of the package': new S3Storage(bucketOptions), 'an S3Storage of that format': kubernetes(),
})) {
  test(`the lock over ${name} creates once, updates what it has seen, changes no byte, and says who it is`, async () => {
    const key = freshKey('lock');
    const [a, b] = ['a', 'b'].map((identity) => over(storage, key, identity));
    const first = record('a', { theirs: [1, 'ü'] });
    assert.equal(await a.get(), null);
    const { etag } = await a.create(first);
    if (!(storage instanceof MemoryStorage)) assert.deepEqual(await getObject(key), { etag, text: JSON.stringify(first) });
    await assert.rejects(b.create(record('b')), { code: 'EDGELECT_CONFLICT' });
    assert.deepEqual(await b.get(), { record: first, etag });
    const next = await a.update(etag, record('a', { renewTime: '2024-02-02T10:15:45.000Z' }));
    await assert.rejects(b.update(etag, record('b')), { code: 'EDGELECT_CONFLICT' });
    const found = await b.get();
    assert.deepEqual([found.etag, found.record.renewTime], [next.etag, '2024-02-02T10:15:45.000Z']);
    await assert.rejects(over(storage, freshKey('lock')).update(next.etag, record('a')), { code: 'EDGELECT_CONFLICT' });
    assert.deepEqual([a.identity(), a.describe()], ['a', `${key} (a)`]);
  });
}

test('an elector and the lock see one record; over epochs members of the format find one too', async () => {
  const storage = kubernetes();
  const key = freshKey('lock');
  const elector = new Elector({ storage, lockfilePath: key, serverId: 'ours', leaderTimeout: 3_000, probe: false });
  await elector.init();
  const lock = over(storage, key, 'theirs');
  const tombstone = await lock.get();
  assert.deepEqual([tombstone.record.holderIdentity, tombstone.record.renewTime], ['', '0001-01-01T00:00:00.000Z']);
  await elector.lead(async () => {
    assert.equal((await lock.get()).record.holderIdentity, 'ours');
    await assert.rejects(lock.update(tombstone.etag, record('theirs')), { code: 'EDGELECT_CONFLICT' });
  });
  const epochs = new Elector({ storage: new EpochStorage({ ...bucketOptions, format: 'kubernetes' }), lockfilePath: freshKey('epochs'), serverId: 'ours' });
  await epochs.init();
  assert.equal(JSON.parse((await getObject(`${epochs.config.lockfilePath}/lock_0000000001.json`)).text).holderIdentity, '');
});

test('an object that is no record, or too long for one, is named and left alone; what is no record or etag is not sent', async () => {
  const storage = new S3Storage(bucketOptions);
  for (const body of ['[]', '{', 'null', '"x"', Uint8Array.of(0xed, 0xa0, 0x80), `{"a":"${'x'.repeat(70_000)}"}`]) {
    const key = freshKey('lock');
    await putObject(key, body);
    const { etag } = await getObject(key);
    await assert.rejects(over(storage, key).get(), { code: 'EDGELECT_STORE' }, String(body).slice(0, 10));
    assert.equal((await getObject(key)).etag, etag);
  }
  const lock = over(storage, freshKey('lock'));
  await assert.rejects(lock.create('text'), { code: 'EDGELECT_CONFIG', field: 'record' });
  await assert.rejects(lock.update('', record('a')), { code: 'EDGELECT_CONFIG', field: 'oldEtag' });
  await assert.rejects(lock.update('*', record('a')), { code: 'EDGELECT_STORE', message: /nothing was sent/ });
});

test('a conflict is what the store says of the condition, what is not known is thrown as such, and no secret is in it', async () => {
  const options = { bucket: 'jobs', region: 'us-east-1', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } };
  const codeOf = async (asking) => {
    const error = await asking.then(() => undefined, (thrown) => thrown);
    assert.doesNotMatch(String(error?.message), /the-secret|Signature=/);
    return error?.code.replace('EDGELECT_', '');
  };
  for (const [manner, reading, creating, updating] of [
    ['honest', undefined, undefined, 'CONFLICT'], ['terse', undefined, 'CONFLICT', 'CONFLICT'], ['forbids', undefined, 'STORE', 'STORE'],
    ['lists', 'STORE', undefined, 'CONFLICT'], ['unwell', 'STORE', 'UNKNOWN', 'UNKNOWN'],
    // Whoever says 200 beside a page, or names no version, may have stored nothing.
    ['portal', 'STORE', 'UNKNOWN', 'UNKNOWN'], ['nameless', undefined, 'UNKNOWN', 'CONFLICT'],
    // Another write is under way, which may be this one.
    ['between', undefined, 'UNKNOWN', 'UNKNOWN'],
    ['vanished', undefined, 'UNKNOWN', 'CONFLICT'], ['elsewhere', undefined, 'UNKNOWN', 'UNKNOWN'], ['gateway', undefined, 'UNKNOWN', 'UNKNOWN'],
    ['cache', undefined, 'UNKNOWN', 'UNKNOWN'],
  ]) {
    const { endpoint } = await kept(startLiar(manner));
    const lock = over(new S3Storage({ ...options, endpoint }), 'ha/leader');
    const codes = [await codeOf(lock.get()), await codeOf(lock.create(record('a'))), await codeOf(lock.update('"1"', record('a')))];
    assert.deepEqual(codes, [reading, creating, updating], manner);
  }
  const credentials = () => Promise.reject(new Error('no credentials today'));
  const storage = new S3Storage({ ...options, endpoint: 'http://127.0.0.1:1', credentials });
  await assert.rejects(over(storage, 'ha/leader').get(), { code: 'EDGELECT_STORE', message: /no credentials today/ });
});

test('a success with the version that was to be replaced is believed only where the record was written again as it stood', async () => {
  const options = { bucket: 'jobs', region: 'us-east-1', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } };
  for (const [manner, code] of [['echoes', 'EDGELECT_UNKNOWN'], ['honest', undefined]]) {
    const { endpoint } = await kept(startLiar(manner));
    const lock = over(new S3Storage({ ...options, endpoint }), 'ha/leader');
    const { etag } = await lock.create(record('a'));
    assert.deepEqual(await lock.update(etag, record('a')), { etag }, manner);
    const updating = lock.update(etag, record('b')).then(() => undefined, (error) => error.code);
    assert.equal(await updating, code, manner);
  }
});

test('a signal ends the waiting, also for a storage that does not know it', async () => {
  const never = () => new Promise(() => {});
  const lock = over({ get: never, putIfMatch: never }, 'x');
  for (const call of [(how) => lock.get(how), (how) => lock.create(record('a'), how), (how) => lock.update('"e"', record('a'), how)]) {
    await assert.rejects(within(call({ signal: AbortSignal.timeout(20) })), { name: 'TimeoutError' });
  }
});

test('a signal ends the waiting, and the request', async () => {
  const store = await kept(startLiar('silent'));
  const lock = over(new S3Storage({ ...bucketOptions, endpoint: store.endpoint }), 'ha/leader');
  const controller = new AbortController();
  const asking = assert.rejects(lock.get({ signal: controller.signal }), { name: 'TimeoutError' });
  await until(() => store.seen.length === 1);
  controller.abort(new DOMException('late', 'TimeoutError'));
  await asking;
  await assert.rejects(lock.create(record('a'), { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(store.seen.length, 1, 'nothing is asked for who has given up before');
});

test("the document's own configuration starts, capped at the fence, and says so", () => {
  const warnings = [];
  const config = {
    leaderKey: 'ha/leader', leaseDuration: '45s', renewDeadline: 'PT45S', retryPeriod: 15_000, holderIdentity: 'node-123',
    onWarning: (text) => warnings.push(text),
  };
  const elector = new Elector({ storage: new MemoryStorage(), ...leaderElectionOptions(config) });
  const { leaderTimeout, frequentInterval, margin, lockfilePath, serverId } = elector.config;
  assert.deepEqual([leaderTimeout, frequentInterval, margin, lockfilePath, serverId], [45_000, 15_000, 4_500, 'ha/leader', 'node-123']);
  assert.match(warnings.join(), /renewDeadline = 45000 ms is capped at 40500 ms/);
});

test('a shorter renewDeadline ends the authority earlier, and what cannot be kept is refused by name', () => {
  const options = leaderElectionOptions({ leaderKey: 'k', leaseDuration: '15s', renewDeadline: '10s', retryPeriod: '2s' });
  assert.equal(options.margin, 5_000);
  assert.equal(leaderElectionOptions().leaderTimeout, 15_000);
  assert.equal(new Elector({ storage: new MemoryStorage(), ...options }).config.margin, 5_000);
  for (const [field, config] of [
    ['renewDeadline', { leaseDuration: '45s', renewDeadline: '20s' }],
    ['leaseDuration', { leaseDuration: '45 s' }],
    ['retryPeriod', { retryPeriod: -1 }],
    ['bucketName', { bucketName: 'b' }],
    ['leaderCallbacks.onStartLeading', { leaderCallbacks: { onStartLeading: 1 } }],
  ]) assert.throws(() => leaderElectionOptions(config), { code: 'EDGELECT_CONFIG', field }, field);
});

test('the three callbacks hear of the start, the stop and each new leader', async () => {
  const heard = [];
  const onStartLeading = ({ token }) => heard.push(`start ${Number.isSafeInteger(token)}`);
  const leaderCallbacks = { onStartLeading, onStopLeading: ({ reason }) => heard.push(`stop ${reason}`), onNewLeader: (id) => heard.push(`leader ${id}`) };
  const options = leaderElectionOptions({ leaderKey: KEY, leaseDuration: '1s', retryPeriod: 250, holderIdentity: 'a', leaderCallbacks });
  const elector = member(await newGroup(), options);
  await started(elector);
  await within(elector.stop());
  assert.deepEqual(heard, ['start true', 'leader a', 'stop stopped']);
});

test('without releaseOnCancel a stop ends the work, writes nothing, and leaves the lease to run out', async () => {
  const { elector, storage, losses, term } = await leading(leaderElectionOptions({ leaderKey: KEY, leaseDuration: '1s', retryPeriod: 250, releaseOnCancel: false }));
  let body;
  term.signal.addEventListener('abort', () => ({ body } = storage.get(KEY)));
  await within(elector.stop());
  assert.ok(term.signal.aborted && !elector.isLeader() && term.remaining() === 0);
  assert.deepEqual(losses.map(({ reason }) => reason), ['stopped']);
  await pause(300);
  assert.deepEqual(storage.get(KEY).body, body);
  assert.ok(!isReleased(body));
  assert.ok((await started(member(storage, { serverId: 'b' }))).token > term.token);
});

test('a stop that is told to leave the lease waits for the work, and one that is told to release it does', async () => {
  const { elector, storage } = await leading();
  let ended = false;
  const work = elector.lead(async ({ signal }) => {
    await fired(signal);
    await pause(100);
    ended = true;
  }).catch(() => {});
  await pause(10);
  await within(elector.stop({ release: false }));
  assert.ok(ended && !isReleased(storage));
  await within(work);
  const releasing = await leading({ releaseOnStop: false });
  await within(releasing.elector.stop({ release: true }));
  assert.ok(isReleased(releasing.storage));
  const parking = await leading();
  const { etag } = parking.storage.get(KEY);
  await within(parking.elector.stop({ park: true, release: false }));
  assert.equal(parking.storage.get(KEY).etag, etag, 'what is to write nothing does not park either');
  await assert.rejects(releasing.elector.stop({ release: 'no' }), { code: 'EDGELECT_CONFIG', field: 'release' });
});

test('a module of settings needs this entry alone, by import and by require', () => {
  for (const loads of ['await import', "process.getBuiltinModule('module').createRequire(import.meta.url)"]) {
    const program = `console.log((${loads}('edgelect/object-store-lock')).leaderElectionOptions().leaderTimeout);`;
    const { stdout, stderr } = run(['--input-type=module', '-e', program]);
    assert.deepEqual([stdout, stderr], ['15000\n', ''], loads);
  }
});

test('what a storage of one\'s own answers, a record that JSON would change or that is too long, and a signal that is no option are refused', async () => {
  const large = new TextEncoder().encode(`{"a":"${'x'.repeat(70_000)}"}`);
  for (const [found, why] of [
    [{ etag: '"1"' }, /no body/], [{ etag: '"1"', body: 5 }, /no body/], [{ etag: '"1"', body: large.buffer }, /no body/], [{ etag: '"1"', body: large }, /64 KiB/],
    [{ etag: '"1"', body: `{"a":"${'ü'.repeat(40_000)}"}` }, /64 KiB/], [{ body: '{}' }, /no etag/],
  ]) await assert.rejects(over({ get: () => found, putIfMatch: () => null }, KEY).get(), { code: 'EDGELECT_STORE', message: why });
  const held = '{"a":[9007199254740992,-0.0,1.50,1E+3,0.1234567890123456789,"9007199254740993"],"\\"1e400":0.1}';
  assert.deepEqual((await over({ get: () => ({ etag: '"1"', body: held }), putIfMatch: () => null }, KEY).get()).record, JSON.parse(held));
  for (const number of ['9007199254740993', '-9007199254740993.0', '1e400', '1e-400']) {
    const foreign = { get: () => ({ etag: '"1"', body: `{"theirs":["\\"",{"a":1,"b":${number}}]}` }), putIfMatch: () => assert.fail('written') };
    const refused = { code: 'EDGELECT_STORE', message: new RegExp(`has the number ${number}, .*nothing was changed`) };
    await assert.rejects(over(foreign, KEY).get(), refused);
  }
  const [storage, circle] = [new MemoryStorage(), []];
  circle.push(circle);
  const lock = over(storage, KEY);
  const holes = [1];
  holes[2] = 3;
  for (const value of [NaN, () => 1, [1n], Symbol('a'), circle, new Date(NaN), new Set([1]), new Map(), Promise.resolve(1), holes, [undefined]]) {
    await assert.rejects(lock.create(record('a', { a: value })), { code: 'EDGELECT_CONFIG', field: 'record' });
  }
  for (const none of [undefined, null, [], 'text', new Map()]) await assert.rejects(lock.create(none), { code: 'EDGELECT_CONFIG', field: 'record' });
  await over(storage, 'dated').create(record('a', { at: new Date(0), left: undefined }));
  assert.equal((await over(storage, 'dated').get()).record.at, '1970-01-01T00:00:00.000Z');
  const [least, most] = [JSON.stringify(record('a', { fill: '' })).length, 65_536];
  for (const fill of ['x'.repeat(most - least + 1), 'ü'.repeat((most - least) / 2 + 1)]) {
    const refused = { code: 'EDGELECT_CONFIG', field: 'record', message: /at most 65536/ };
    await assert.rejects(lock.create(record('a', { fill })), refused);
    await assert.rejects(lock.update('"1"', record('a', { fill })), refused);
  }
  const { etag } = await over(storage, 'full').create(record('a', { fill: 'x'.repeat(most - least) }));
  assert.equal((await over(storage, 'full').get()).etag, etag, 'the longest one is read');
  const signal = AbortSignal.abort(new Error('enough'));
  for (const call of [(given) => lock.get(given), (given) => lock.create(record('a'), given), (given) => lock.update('"1"', record('a'), given)]) {
    await assert.rejects(call(signal), { code: 'EDGELECT_CONFIG', field: 'options' });
    await assert.rejects(call({ singal: signal }), { code: 'EDGELECT_CONFIG', field: 'singal' });
    await assert.rejects(call({ signal }), /enough/);
  }
  assert.equal(storage.get(KEY), null);
});
