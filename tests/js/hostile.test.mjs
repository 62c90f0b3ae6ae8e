// What nobody should give to an elector, but somebody does: wrong options, values, bodies, signals, errors and storages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import vm from 'node:vm';
import { celeriant, coordinator, DynamoDBStorage, EdgelectError, Elector, Electors, EpochStorage, MemoryStorage, R2Storage, Route53Storage, S3Storage, Shards } from 'edgelect';
import { leaderElectionOptions, objectStoreLock } from 'edgelect/object-store-lock';
import { plainError } from '../../js/host.js';
import { FAST, LONG, bent, isReleased, leading, leads, member, newGroup, newLocker, noting, replaced, started, until, within } from './group.mjs';

const credentials = { accessKeyId: 'the-id', secretAccessKey: 'SECRET-SHOWN' };
const secret = credentials.secretAccessKey;
const nothing = () => {};
const circle = {};
circle.circle = circle;
/** What JSON makes nothing of. */
const noJson = { toJSON() {} };
const service = new Proxy({}, { get: () => nothing });

const overMemory = (options) => new Elector({ storage: new MemoryStorage(), ...FAST, ...options });
const s3Storage = (options) => new S3Storage({ endpoint: 'http://127.0.0.1:9', bucket: 'jobs', region: 'auto', credentials, ...options });
const table = (options) => new DynamoDBStorage({ endpoint: 'http://127.0.0.1:9', region: 'auto', credentials, table: 'locks', ...options });
const zone = (options) =>
  new Route53Storage({ endpoint: 'http://127.0.0.1:9', credentials, hostedZoneId: 'Z1', recordPrefix: 'lock', domainName: 'example.com', ...options });
const inZone = (options) => new Elector({ storage: zone(), lockfilePath: 'shard-1', ...options });
const epochs = (options) => new EpochStorage({ endpoint: 'http://127.0.0.1:9', region: 'auto', bucket: 'jobs', credentials, ...options });
const lock = (options) => objectStoreLock(options && { storage: new MemoryStorage(), key: 'k', identity: 'a', ...options });
const FIVE = { shardId: 'a', ownerId: 'b', leaseDuration: 1_000, renewPeriod: 200, locker: new MemoryStorage() };

const OPTIONS = [
  'lockfilePath', 'serverId', 'serverAddr', 'peerMode', 'failFast', 'follow', 'retryDelays', 'termFloor', 'frequentInterval', 'infrequentInterval',
  'leaderTimeout', 'peerTimeout', 'margin', 'storeSkew', 'maxLease', 'requestTimeout', 'sustain',
];
/** What the wasm never sees unless it is misspelt. */
const OWN_OPTIONS = [
  'storage', 'probe', 'unref', 'releaseOnStop', 'warn', 'onAcquireLeadership', 'onLoseLeadership', 'onNewLeader', 'onError', 'onStatus',
];
/** Each of these with its last two letters exchanged. */
const misspelt = (names) => names.map((name) => {
  const wrong = name.slice(0, -2) + name.at(-1) + name.at(-2);
  return [{ [wrong]: secret }, wrong, new RegExp(`^${wrong} = \\(not shown\\): no such option: did you mean ${name}\\? docs/options\\.md lists them$`)];
});
const ONE_LINE = 'must be a text of one line without control characters; what was read from a file often ends with a newline: remove it';

/** What is given, the field that the error names, and what it says besides. Common mistakes with an S3 store are in
 * tests/runtimes/bad-input.mjs, with their whole errors; those of a setting in src/config.rs. */
const REFUSED = {
  Elector: [overMemory, [
    [{ leaderTimeout: NaN }, 'leaderTimeout'],
    [{ leaderTimeout: 10n }, 'leaderTimeout'],
    [{ lockfilePath: nothing }, 'lockfilePath'],
    [{ lockfilePath: credentials }, 'lockfilePath'],
    [{ unref: 'yes' }, 'unref'],
    [{ probe: 'no' }, 'probe', /^probe = "no": must be true or false$/],
    [{ releaseOnStop: 1 }, 'releaseOnStop', /^releaseOnStop = 1: must be true or false$/],
    [{ warn: {} }, 'warn', /^warn = \(object\): must be true or false$/],
    [{ onNewLeader: 'me' }, 'onNewLeader'],
    [{ heartbeat: true }, undefined, /peerMode/],
    ...misspelt([...OPTIONS, ...OWN_OPTIONS]),
    [{ storage: { head: nothing, get: nothing, put: nothing } }, 'storage', /^storage = \(object\): this is an R2 bucket binding, which a storage has to wrap: new R2Storage\(env\.BUCKET\)$/],
    ...['1s', -1, NaN, 60_001].map((writesApart) => [{ storage: { get: nothing, putIfMatch: nothing, writesApart } }, 'writesApart', /: must be milliseconds from 0 to 60000: the shortest time between two writes of one object$/]),
    [{ storage: { get: nothing, putIfMatch: nothing, format: 'xml' } }, 'format', /^format = "xml": must be native or kubernetes$/],
    [{ credentials }, 'credentials'],
    [{ secretAccessKey: secret }, 'secretAccessKey'],
    [{ storage: 's3://bucket' }, 'storage'],
    [{ serverId: NaN }, 'serverId'],
    [{ serverId: 7n }, 'serverId'],
    [{ serverAddr: Symbol('a') }, 'serverAddr'],
    [{ retryDelays: circle }, undefined, /plain data/],
    [noJson, undefined, /plain data/],
  ]],
  'Elector in a zone': [inZone, [
    [{ serverId: 'worker 1' }, 'serverId', /has no space/],
    [{ lockfilePath: 'Shard-1' }, 'lockfilePath'],
  ]],
  'Elector alone': [(options) => new Elector(options), [[5]]],
  Electors: [(options) => new Electors({ storage: new MemoryStorage(), ...options }), [
    [{ storage: {} }, 'storage'],
    [{ maxConnection: 3 }, 'maxConnection', /did you mean maxConnections\?/],
    [{ maxConnections: 1 }, 'maxConnections', /from 2 to 10000/],
    [{ leaderTimeOut: 3 }, 'leaderTimeOut', /did you mean leaderTimeout\?/],
    [{ lockfilePath: 'a' }, 'lockfilePath', /electors\.add/],
    [{ unref: 'yes' }, 'unref', /true or false/],
    [{ onError: 3 }, 'onError', /a function/],
  ]],
  Shards: [(options) => new Shards({ storage: new MemoryStorage(), prefix: 'jobs', shards: 8, ...options }), [
    [{ storage: newLocker() }, 'storage'],
    ...[undefined, 'a/'].map((prefix) => [{ prefix }, 'prefix']),
    ...[0, '8'].map((shards) => [{ shards }, 'shards']),
    [{ onLose: 3 }, 'onLose'],
    [{ onAcquireLeadership: nothing }, 'onAcquireLeadership'],
    [{ onAquire: 1 }, 'onAquire', /did you mean onAcquire\?/],
    [{ leaderTimeout: 5 }, 'leaderTimeout'],
  ]],
  S3Storage: [s3Storage, [
    [{ endpoint: 7 }, 'endpoint'],
    [{ region: credentials }, 'region'],
    [{ pathStyle: 'yes' }, 'pathStyle'],
    [{ forcePathStyle: true }, 'forcePathStyle'],
    [{ bukcet: 'jobs' }, 'bukcet', /^bukcet = \(not shown\): no such option: did you mean bucket\? an S3Storage has endpoint, /],
    ...['accessKeyId', 'secretAccessKey', 'sessionToken'].flatMap((name) => ['SHOWN\n', 'SHOWN\0', '\rSHOWN'].map((text) =>
      [{ credentials: { ...credentials, [name]: text } }, `credentials.${name}`, new RegExp(`^credentials\\.${name} = \\(not shown\\): ${ONE_LINE}$`)])),
    [{ endpoint: 'http://seaweedfs:8333' }, 'endpoint', /; for a store on a private network see docs\/options\.md#a-store-on-a-private-network$/],
    [{ password: secret }, 'password'],
    [{ credentials: undefined }, 'credentials.accessKeyId', /credentials are/],
    [{ credentials: { ...credentials, accessKeyId: credentials } }, 'credentials.accessKeyId'],
    [{ credentials: { ...credentials, accessKeyId: noJson } }, 'credentials.accessKeyId'],
    ...[10n, Symbol('soon'), 'soon'].map((expiration) => [{ credentials: { ...credentials, expiration } }, 'credentials.expiration', /must be a Date/]),
    [{ kind: 'epochs' }, 'kind'],
    [{ format: 'yaml' }, 'format', /must be native or kubernetes/],
    [{ format: 1 }, 'format'],
    [noJson, undefined, /plain data/],
  ]],
  'S3Storage alone': [(options) => new S3Storage(options), [[null]]],
  DynamoDBStorage: [table, [
    [{ table: 7 }, 'table', /must be a text/],
    [{ bucket: 'jobs' }, 'bucket', /no such option; a DynamoDBStorage has endpoint, region, table and credentials/],
    [{ credentials: {} }, 'credentials.accessKeyId', /credentials are/],
    [{ credentials: { ...credentials, accessKeyId: '' } }, 'credentials.accessKeyId', /credentials are/],
  ]],
  'DynamoDBStorage alone': [() => new DynamoDBStorage(), [[undefined, undefined, /a DynamoDBStorage takes an object/]]],
  Route53Storage: [zone, [
    [{ hostedZoneId: 'Z 1' }, 'hostedZoneId', /such as Z1234567890ABC/],
    [{ domainName: 7 }, 'domainName', /must be a text/],
    [{ table: 'a' }, 'table', /no such option; a Route53Storage has/],
  ]],
  EpochStorage: [epochs, [
    [{ bucket: 7 }, 'bucket', /must be a text/],
    [{ table: 'a' }, 'table', /no such option; an EpochStorage has/],
    [{ format: 'yaml' }, 'format'],
  ]],
  R2Storage: [(binding) => new R2Storage(binding), [undefined, null, 'edgelect', {}, nothing, { get: nothing, put: nothing }, service].map((binding) =>
    [binding, 'binding', /^binding = \(\w+\): an R2Storage takes an R2 bucket binding, such as env\.EDGELECT_R2: \[\[r2_buckets\]\] in wrangler\.toml binds one$/])],
  'R2Storage with options': [(options) => new R2Storage({ head: nothing, get: nothing, put: nothing }, options), [
    [{ fromat: 'native' }, 'fromat', /^fromat = \(not shown\): no such option; an R2Storage takes format$/],
    [5, 'options', /an object with format/],
    [{ format: 'xml' }, 'format', /"xml"/],
  ]],
  objectStoreLock: [lock, [
    [{ storage: {} }, 'storage'],
    [{ storage: { head: nothing, get: nothing, put: nothing } }, 'storage', /new R2Storage\(env\.BUCKET\)$/],
    [{ key: '' }, 'key'],
    [{ identity: undefined }, 'identity'],
    [undefined, 'storage'],
    ...[table(), zone(), epochs()].map((storage) => [{ storage }, 'storage', /an S3Storage, an R2Storage.*status\(\) of an Elector/]),
    ...['/leader', 'a//b', 'a/../b'].map((key) => [{ storage: s3Storage(), key }, 'key']),
  ]],
  leaderElectionOptions: [(options) => leaderElectionOptions({ leaderKey: 'k', ...options }), [
    [{ leaderCallbacks: null }, 'leaderCallbacks'],
    [{ onWarning: null }, 'onWarning'],
  ]],
  celeriant: [celeriant, [
    [undefined, 'cluster'],
    [{ cluster: 'a/' }, 'cluster'],
    [{ cluster: 'a', leaseDuration: '30s' }, 'leaseDuration'],
    [{ cluster: 'a', heartbeat: 500 }, 'heartbeat'],
  ]],
  coordinator: [(options) => coordinator({ ...FIVE, ...options }), [...Object.keys(FIVE).map((field) => [{ [field]: undefined }, field]), [{ shard: 'a' }, 'shard']]],
  ...Object.fromEntries([objectStoreLock, leaderElectionOptions, celeriant, coordinator].map((make) =>
    [`${make.name} alone`, [make, [null, 'text', 1, []].map((given) => [given, 'options', /takes an object with/])]])),
};

for (const [name, [make, rows]] of Object.entries(REFUSED)) {
  test(`${name}: what it cannot be given is refused by name, and no secret is shown`, () => {
    for (const [given, field, rule = new RegExp(field ?? '')] of rows) {
      const what = inspect(given);
      assert.throws(() => make(given), (error) => {
        assert.ok(error instanceof EdgelectError, `${what}: ${error}`);
        assert.deepEqual([error.code, field && error.field], ['EDGELECT_CONFIG', field], `${what}: ${error.message}`);
        assert.match(error.message, rule, what);
        assert.doesNotMatch(`${error.message} ${error.stack}`, /SHOWN/, what);
        return true;
      }, what);
    }
  });
}

const leadsOn = ({ elector, losses, term }) => {
  assert.ok(elector.isLeader() && !term.signal.aborted && elector.status().term === term.token);
  assert.deepEqual(losses, []);
};

test('what is refused, or is no format or signal, costs nobody else a term', async () => {
  const bystander = await leading(LONG);
  const { elector } = bystander;
  const refused = async (give, field, what) => {
    await assert.rejects(within((async () => give())()), (error) => error.code === 'EDGELECT_CONFIG' && (!field || error.field === field), what);
    leadsOn(bystander);
  };
  for (const give of [() => overMemory(noJson), () => s3Storage(noJson), () => elector.updateConfig(noJson)]) await refused(give);
  for (const format of [1, true, {}, ['native'], Symbol('native'), 1n, nothing]) {
    const what = `format ${inspect(format)}`;
    const storage = new MemoryStorage();
    const other = new Elector({ storage, lockfilePath: 'a' });
    storage.format = format;
    await refused(() => new Elector({ storage, lockfilePath: 'a' }), 'format', what);
    await refused(() => new R2Storage({ head: nothing, get: nothing, put: nothing }, { format }), 'format', what);
    for (const give of [() => other.start(), () => other.init(), () => other.runScheduled(Date.now(), nothing)]) await refused(give, 'format', what);
  }
  const cluster = Object.assign(new MemoryStorage(), { format: 'yaml' });
  await refused(() => member(cluster).start(), 'format');
  for (const format of [undefined, null, 'native', 'kubernetes']) assert.ok(new Elector({ storage: Object.assign(new MemoryStorage(), { format }), lockfilePath: 'a' }));
  for (const signal of [{ aborted: false, addEventListener() {} }, 7, 'abort', { aborted: true }]) {
    const work = () => assert.fail('the work began');
    for (const call of ['start', 'waitForLeadership', 'init']) await refused(() => elector[call]({ signal }), 'signal', `${call} ${inspect(signal)}`);
    await refused(() => elector.lead(work, { signal }), 'signal', `lead ${inspect(signal)}`);
  }
  await within(elector.stop());
});

test('an option that a call does not have is refused, before anything begins, and a signal in its place', async () => {
  const work = () => assert.fail('the work began');
  const names = { doctor: 'races, age, onBegin, onStep and signal' };
  for (const call of ['lead', 'start', 'waitForLeadership', 'init', 'doctor']) {
    const elector = member(await newGroup());
    const give = (options) => within(call === 'lead' ? elector.lead(work, options) : elector[call](options));
    const refused = (field, message) => ({ name: 'EdgelectError', code: 'EDGELECT_CONFIG', field, message });
    const unknown = `singal = (not shown): no such option; ${call} takes ${names[call] ?? 'signal'}`;
    await assert.rejects(give({ singal: AbortSignal.abort() }), refused('singal', unknown));
    await assert.rejects(give(AbortSignal.abort()), refused('options', 'options = (object): an AbortSignal is given as { signal }'));
    await assert.rejects(give('SIGTERM'), refused('options', `options = (string): ${call} takes an object, such as { signal }`));
    assert.equal(elector.status().role, 'stopped');
  }
});

test('whatever it is given, a stop stops and a resignation resigns, and both say in the end what was wrong', async () => {
  const untouched = () => assert.fail('a value is not asked what it is worth');
  const wrong = {
    park: ['yes', Symbol('park'), 1n, { valueOf: untouched, toString: untouched }],
    release: [1, 'no'],
    signal: [{}, 7, { aborted: false, addEventListener() {} }],
    relase: [false],
  };
  const both = [['resign', 'signal', 7], ['resign', 'park', true]];
  for (const [call, field, value] of Object.entries(wrong).flatMap(([name, values]) => values.map((value) => ['stop', name, value])).concat(both)) {
    const { elector, losses, storage } = await leading(LONG);
    await assert.rejects(within(elector[call]({ [field]: value })), { code: 'EDGELECT_CONFIG', field }, inspect(value));
    assert.deepEqual([losses.length, elector.isLeader(), isReleased(storage)], [1, false, true], `${call}: ${inspect(value)}`);
  }
  for (const call of ['stop', 'resign']) {
    for (const options of ['SIGTERM', 5, AbortSignal.abort()]) {
      const { elector, losses } = await leading(LONG);
      await assert.rejects(within(elector[call](options)), { code: 'EDGELECT_CONFIG', field: 'options' }, `${call} ${inspect(options)}`);
      assert.equal(losses.length, 1);
      await elector.stop();
    }
  }
  const { elector } = await leading(LONG);
  await assert.rejects(elector.stop({ get park() { throw new Error('of the caller'); } }), /of the caller/);
  assert.equal(elector.status().role, 'stopped');
});

test('a storage of one\'s own may answer as it likes: bounded, and never a leader by accident', async () => {
  const lying = Object.assign(new Uint8Array(4), { subarray: () => ({ length: 3e9 }) });
  const huge = 'x'.repeat(50 << 20);
  const bystander = await leading(LONG);
  for (const get of [
    () => ({ body: huge, etag: '"1"' }),
    () => ({ body: '{}', etag: huge }),
    () => ({ body: 7, etag: '"1"' }),
    () => ({ body: '{}' }),
    () => ({ body: lying, etag: '1' }),
    () => 'text',
    () => { throw new Error('sync'); },
    () => new Promise(nothing),
  ]) {
    const elector = member({ get, putIfMatch: () => null });
    await elector.start();
    assert.doesNotMatch(await until(() => elector.status().error), /broke down/);
    assert.equal(elector.isLeader(), false);
    await elector.stop();
    leadsOn(bystander);
  }
  await bystander.elector.stop();
});

test('an etag that no answer of R2 gave is refused before anything is asked: R2 takes a star for any object', async () => {
  const asked = [];
  const note = (name) => async () => void asked.push(name);
  const storage = new R2Storage({ head: note('head'), get: note('get'), put: note('put') });
  const put = (etag, options) => storage.putIfMatch('key', new Uint8Array(1), etag, options);
  for (const etag of ['*', '"*"', '', '""', 'abc', 'W/"abc"', '"a","b"', undefined, 5]) {
    await assert.rejects(put(etag), { code: 'EDGELECT_CONFIG', field: 'etag' }, String(etag));
  }
  const aborted = { signal: AbortSignal.abort(new Error('too late')) };
  await assert.rejects(storage.get('key', aborted), /too late/);
  await assert.rejects(put(null, aborted), /too late/);
  assert.deepEqual(asked, []);
});

test('a version that no header can carry is left out of the health answer; bytes of another realm are bytes', async () => {
  const memory = await newGroup();
  const Foreign = vm.runInNewContext('Uint8Array');
  const odd = (found) => found && { body: found.body && Foreign.from(found.body), etag: `ä\r\n${found.etag}` };
  const elector = member(bent(memory, {
    get: (key) => odd(memory.get(key)),
    putIfMatch: (key, body, etag) => odd(memory.putIfMatch(key, body, etag?.slice(3) ?? null)),
  }), LONG);
  await started(elector);
  const answer = await elector.handleRequest(new Request('http://x/health/leadership'));
  assert.deepEqual([answer.status, answer.headers.get('etag')], [200, null]);
});

test('settings are those of the moment they were given, whatever becomes of the objects', async () => {
  const retryDelays = [100, 100];
  const elector = member(await newGroup(), { leaderTimeout: 2000, retryDelays });
  await started(elector);
  retryDelays.push(7);
  assert.deepEqual(elector.config.retryDelays, [100, 100]);
  assert.equal(elector.status().role, 'leader');
  assert.throws(() => elector.updateConfig({ lockfilePath: 'other' }), { field: 'lockfilePath' }, 'while it runs');
  await elector.stop();
  for (const name of ['lockfilePath', 'serverId']) assert.throws(() => elector.updateConfig({ [name]: 'other' }), { field: name }, 'once it has stopped');
  elector.updateConfig({ ...elector.config, maxLease: 4000 });
  assert.equal(elector.config.maxLease, 4000);
});

test('what an elector cannot change, and what holds no options, is refused by name', () => {
  const elector = overMemory();
  for (const [name, value] of Object.entries({ storage: new MemoryStorage(), onError: nothing, page: true, log: nothing })) {
    assert.throws(() => elector.updateConfig({ [name]: value }), { field: name, message: /: can't change: make a new elector$/ });
  }
  for (const given of [5, 'text', [], nothing]) assert.throws(() => elector.updateConfig(given), { field: 'options', message: /updateConfig takes an object/ });
  for (const given of [5, [], nothing]) assert.throws(() => elector.enablePeerMode(given), { field: 'options', message: /enablePeerMode takes a certificate/ });
});

test('a setting that starts the elector when it is looked at starts it once', async () => {
  const [calls, terms] = [[], []];
  let elector;
  const retryDelays = { toJSON: () => void elector?.start() ?? [50, 50] };
  const storage = noting(await newGroup(), (name) => name === 'get' && calls.push(name));
  elector = member(storage, { leaderTimeout: 2000, retryDelays, onAcquireLeadership: ({ token }) => terms.push(token) });
  await elector.start();
  assert.deepEqual(calls, ['get'], 'one session asks');
  const { token } = await leads(elector);
  await elector.stop();
  assert.deepEqual(terms, [token]);
});

/** What an elector over S3 says of a store that `fetch` stands for. */
const errorOver = (fetch) => replaced(globalThis, 'fetch', fetch, async () => {
  const elector = member(s3Storage());
  await elector.start();
  const error = await until(() => elector.status().error);
  await elector.stop();
  return error;
});

test('a fetch that quotes the signed request in its error shows no signature, and a certificate is told by its code', async () => {
  for (const fetch of [
    () => { throw new Error('failed: authorization: AWS4-HMAC-SHA256 Signature=deadbeef'); },
    () => Promise.reject(new Error('x-amz-security-token: hidden')),
    () => ({ then: 'not a function' }),
  ]) assert.doesNotMatch(await errorOver(fetch), /deadbeef|hidden|HMAC/);
  const code = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
  const unverified = () => Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code } }));
  assert.match(await errorOver(unverified), new RegExp(code));
});

test('what a store says of a signature is shown under its name, and what quotes a request or keys never is', () => {
  const named = (name, message, more) => Object.assign(new Error(message), { name, ...more });
  for (const [error, shown] of [
    [named('SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided. Check your key and signing method.'),
      'SignatureDoesNotMatch: The request signature we calculated does not match the signature you provided. Check your key and signing method.'],
    [named('AuthorizationHeaderMalformed', "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-central-1'"),
      "AuthorizationHeaderMalformed: The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-central-1'"],
    [named('ExpiredToken', 'The security token included in the request is expired'), 'ExpiredToken: The security token included in the request is expired'],
    [named('AccessDenied', "Authorization header requires 'Credential' parameter."), "AccessDenied: Authorization header requires 'Credential' parameter."],
    [named('InvalidRequest', 'Missing required header for this request: x-amz-content-sha256'), 'InvalidRequest: Missing required header for this request: x-amz-content-sha256'],
    [named('CredentialsProviderError', 'Could not load credentials from any providers'), 'CredentialsProviderError: Could not load credentials from any providers'],
    [named('NotCapable', 'Requires net access'), 'NotCapable: Requires net access'],
    [named('NoSuchBucket', ''), 'NoSuchBucket'],
    [new TypeError('fetch failed', { cause: named('Error', '', { code: 'ECONNREFUSED' }) }), 'fetch failed (ECONNREFUSED)'],
    [new Error('credentials.sessionToken = (number): a provider gives texts'), 'credentials.sessionToken = (number): a provider gives texts'],
    ['a text', 'a text'],
    [new Proxy({}, { get: () => { throw new Error('never'); } }), 'something that has no text'],
  ]) assert.equal(plainError(error).message, shown);
  const hex = 'deadBEEF'.repeat(8);
  const token = 'IQoJsecret/hidden';
  const quotes = [
    `failed: authorization: AWS4-HMAC-SHA256 Signature=hidden`, `{"authorization":"AWS4-HMAC-SHA256 hidden"}`, 'AWS4-ECDSA-P256-SHA256 hidden',
    `GET https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=hidden`, `X-Amz-Credential=hidden/20261121/us-east-1/s3/aws4_request`,
    `Error at https%3A%2F%2Fb%2F%3FX-Amz-Security-Token%3Dhidden`, 'X-Amz-Security-Token%253Dhidden', 'https://a.blob/c?sv=1&sig=hidden',
    `x-amz-security-token: ${token}`, `x-amz-security-token ${token}`, `{"x-amz-security-token":"hidden"}`, String.raw`{\"x-amz-security-token\": \"hidden\"}`,
    `[ 'x-amz-security-token', 'hidden' ]`, `Map { 'x-amz-security-token' => 'hidden' }`, `{"name":"x-amz-security-token","value":"hidden"}`,
    String.raw`x-amz-security-token\u0022:\u0022hidden`, 'x-amz-security-token&quot;:&quot;hidden', `"authorization":["hidden"]`, 'Authorization: Basic hidden',
    'Authorization=hidden', 'x-amz-s3session-token: hidden', '<SessionToken>hidden</SessionToken>', '<SecretAccessKey>hidden', 'aws_secret_access_key = hidden',
    `{ accessKeyId: 'a', secretAccessKey: 'hidden' }`, 'x-amz-server-side-encryption-customer-key: hidden', 'sent Bearer hidden.hidden.hidden',
    'Headers.append: "hidden" is an invalid header value.', 'Command failed: helper --password hidden', `hidden ${hex}`, `hidden ${'.'.repeat(300)} AWS4-HMAC-SHA256`,
  ];
  for (const quote of quotes) {
    for (const error of [new Error(quote), quote, new Error('failed', { cause: new Error(quote) }), named('Strange', quote)]) {
      const { message } = plainError(error);
      assert.match(message, /text is not shown/, quote);
      assert.doesNotMatch(message, /hidden|dead/i);
    }
  }
  assert.doesNotMatch(plainError(named(`A${hex}`, 'failed')).message, /dead/i);
});

test('an elector, a locker and a provider of credentials tell what AWS answered', async () => {
  const wrong = () => Promise.reject(Object.assign(new Error('the signature you provided does not match'), { name: 'SignatureDoesNotMatch' }));
  const locker = { tryAcquire: wrong, renew: wrong, release: wrong };
  for (const storage of [{ get: wrong, putIfMatch: wrong }, locker, s3Storage({ credentials: wrong })]) {
    const elector = member(storage, { probe: false });
    await elector.start().catch(() => {});
    assert.match(await until(() => elector.status().error), /SignatureDoesNotMatch: the signature you provided does not match/);
    await within(elector.stop());
  }
});

/** An elector whose fetch answers with a body of empty pieces: `most` of them in one turn, or one each turn without end. `work`
 * gets what was done to it. */
const withBody = async (work, { most, cancel } = {}) => {
  const found = { reads: 0, cancels: 0 };
  const counted = async () => void (found.cancels += 1);
  const read = async () => {
    found.reads += 1;
    if (most === undefined) await new Promise(setImmediate);
    return { done: found.reads > most, value: new Uint8Array(0) };
  };
  const headers = new Headers({ etag: '"1"', date: new Date().toUTCString() });
  const fetch = async () => ({ status: 200, headers, body: { getReader: () => ({ read, cancel: cancel === undefined ? counted : cancel }) } });
  await replaced(globalThis, 'fetch', fetch, async () => {
    const elector = member(s3Storage());
    await elector.start();
    await work(elector, found);
    await within(elector.stop());
  });
  return found;
};

test('a body is read no further once its request is given up, also by a reader without a cancel of the usual kind', async () => {
  // It ends, though late: without that a failure would take all memory before any timer runs.
  const { cancels } = await withBody(async (elector) => assert.match(await until(() => elector.status().error), /does not end/), { most: 50_000 });
  assert.ok(cancels > 0, 'empty pieces without end');
  const found = await withBody((_elector, own) => until(() => own.reads > 10));
  const { reads } = found;
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.ok(found.reads <= reads + 1 && found.cancels > 0, `${found.reads - reads} more reads after the stop`);
  for (const cancel of [null, nothing, () => { throw new Error('of the reader'); }]) {
    await withBody((_elector, own) => until(() => own.reads > 1), { cancel });
  }
});

test('a request whose url is a path of two slashes, or none at all, is answered 404, as that of Node\'s server may be', async () => {
  const storage = new MemoryStorage();
  for (const asked of [overMemory({ page: true }), new Electors({ storage, page: true }), new Shards({ storage, prefix: 'a', shards: 1, page: true })]) {
    const statusOf = async (url) => (await asked.handleRequest({ url, method: 'GET' })).status;
    for (const url of ['//', 'http://', '//x/metrics', undefined]) assert.equal(await statusOf(url), 404, `${asked.constructor.name}: ${url}`);
    assert.equal(await statusOf('/metrics'), 200);
  }
});
