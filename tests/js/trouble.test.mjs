// What somebody sees of a member that does not lead, or whose store fails. In virtual time that passes by itself.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { atEnd, kept, serve } from './servers.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
runtime.flow();
const { DynamoDBStorage, EdgelectError, Electors, EpochStorage, MemoryStorage, S3Storage } = await import('edgelect');
const { FAST, KEY, fired, leads, member, newGroup, noting, pause, putRecord, replaced, started, until, within } = await import('./group.mjs');

const s3Error = (code) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
const credentials = { accessKeyId: 'AK', secretAccessKey: 'shown-nowhere' };

/** A bucket of a store that answers everything with this status and this error of S3's. */
const refusingBucket = (status, code) => {
  const { endpoint, answerWith } = runtime.bucket();
  answerWith(async () => new Response(s3Error(code), { status, headers: { 'content-type': 'application/xml', date: new Date().toUTCString() } }));
  return new S3Storage({ endpoint, bucket: 'jobs', credentials });
};

/** Runs `work` and gives the lines that it showed on standard error. */
const warned = async (work) => {
  const lines = [];
  await replaced(console, 'warn', (line) => lines.push(line), work);
  return lines;
};

/** A storage whose calls throw what `broken.why` is, while it is something. */
const breakable = (storage) => {
  const broken = { why: null };
  const note = () => {
    if (broken.why) throw new Error(broken.why);
  };
  return { broken, storage: noting(storage, note) };
};

/** What a member answers to a question for this path. */
const asked = (one, path = '/status.json', how = undefined) => one.handleRequest(new Request(`http://localhost${path}`, how));

test('a store that refuses for good rejects start, lead and runScheduled', async () => {
  const storage = refusingBucket(403, 'SignatureDoesNotMatch');
  const judge = (error) => {
    assert.ok(error instanceof EdgelectError);
    assert.deepEqual([error.code, error.status, error.storeCode], ['EDGELECT_STORE', 403, 'SignatureDoesNotMatch']);
    assert.match(error.message, /secret/);
    assert.ok(!error.message.includes('shown-nowhere'));
    return true;
  };
  const calls = [(one) => one.start(), (one) => one.lead(() => {}), (one) => one.runScheduled(Date.now(), () => {})];
  const lines = await warned(async () => {
    for (const call of calls) await assert.rejects(within(call(member(storage)), 10_000), judge);
  });
  assert.deepEqual(lines, []);
});

const runToEnd = (program) =>
  new Promise((resolve) => {
    const options = { cwd: inRoot(), env: { PATH: process.env.PATH }, timeout: 30_000 };
    execFile(process.execPath, ['--input-type=module', '-e', program], options, (error, ...told) => resolve([error ? error.code : 0, ...told]));
  });

test('a start that nobody waits for ends the process with its error, unless onError has heard of it; wrong options always do', async () => {
  const { endpoint } = await kept(serve((_request, response) => response.writeHead(403).end(s3Error('SignatureDoesNotMatch'))));
  const refusing = `new S3Storage(${JSON.stringify({ endpoint, bucket: 'jobs', credentials })})`;
  for (const [storage, onError, how, code, stdout, stderr] of [
    [refusing, '', '', 1, '', /EdgelectError: .*secret[^]*EDGELECT_STORE/],
    [refusing, 'onError: ({ code }) => console.log(`heard ${code}`)', '', 0, 'heard EDGELECT_STORE\n', /^$/],
    ['new MemoryStorage()', 'onError: () => {}', '{ sinal: 1 }', 1, '', /EDGELECT_CONFIG/],
  ]) {
    const elector = `new Elector({ storage: ${storage}, lockfilePath: 'a', ${onError} })`;
    const told = await runToEnd(`import { Elector, MemoryStorage, S3Storage } from 'edgelect'; ${elector}.start(${how});`);
    assert.deepEqual(told.slice(0, 2), [code, stdout], elector);
    assert.match(told[2], stderr, elector);
    assert.ok(!told[2].includes('shown-nowhere'));
  }
});

test('a problem that lasts, and its end, is a line each and ends nobody, unless onError has it, warn is false or the console throws', async () => {
  const forbidden = () => { throw new Error('no console'); };
  for (const [options, shown, heard, warn] of [
    [{}, 2, 0], [{ onError: true }, 0, 1], [{ onError: true, warn: true }, 2, 1], [{ warn: false }, 0, 0], [{}, 0, 0, forbidden],
  ]) {
    const { broken, storage } = breakable(await newGroup());
    const [lines, errors] = [[], []];
    const elector = member(storage, { ...options, onError: options.onError && ((error) => errors.push(error)) });
    broken.why = 'first trouble: the node is NotCapable yet\nedgelect: group a: forged\u001b[2J';
    await replaced(console, 'warn', warn ?? ((line) => lines.push(line)), async () => {
      await within(elector.start());
      await until(() => elector.status().requests.read > 4);
      assert.match(elector.status().error, /first trouble/);
      broken.why = null;
      await leads(elector);
      await elector.stop();
    });
    assert.deepEqual([lines.length, errors.length], [shown, heard], JSON.stringify(options));
    for (const { code, message } of errors) assert.ok(code === 'EDGELECT_STORE' && message.includes('first trouble'), message);
    if (shown > 0) assert.match(lines.join('\n'), /^edgelect: group a: .*first trouble.*NotCapable\P{Cc}*\n.*the problem is over\P{Cc}*$/u);
  }
});

test('a store that worked ends nobody, whatever it says; as JSON each line is one object, and the level says which there are', async () => {
  const { broken, storage } = breakable(await newGroup());
  const run = (options) => warned(async () => {
    broken.why = null;
    const elector = member(storage, { log: 'json', ...options });
    await started(elector);
    broken.why = new Error('NotCapable: one\ntwo');
    await until(() => elector.status().error !== null && !elector.isLeader());
    assert.notEqual(elector.status().role, 'stopped');
    await elector.stop();
  });
  const lines = (await run({ logLevel: 'info' })).map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ level, event }) => `${level} ${event}`), ['info acquired', 'warn problem', 'info lost']);
  const [acquired, problem] = lines;
  assert.deepEqual(Object.keys(acquired), ['time', 'level', 'group', 'event', 'term', 'message']);
  assert.ok(acquired.group === KEY && acquired.term > 0 && !('term' in problem) && problem.message.includes('one two'));
  assert.deepEqual((await run({ onError: () => {} })).length, 0);
  for (const [option, value] of [['log', 'xml'], ['logLevel', 'loud']]) {
    assert.throws(() => member(storage, { [option]: value }), { code: 'EDGELECT_CONFIG', field: option });
  }
});

test('start has heard of the leader when it resolves, and says what it waits for', async () => {
  const storage = await newGroup();
  const first = member(storage, { serverId: 'first' });
  await started(first);
  const second = member(storage, { serverId: 'second' });
  await second.start();
  assert.equal(second.leaderId(), 'first');
  const { role, waiting } = second.status();
  assert.deepEqual([role, waiting.reason], ['follower', 'lease']);
  assert.ok(waiting.untilMs > Date.now() - 100 && waiting.untilMs <= Date.now() + FAST.leaderTimeout);
  assert.match(waiting.message, /^"first" leads; /);
  assert.equal(first.status().waiting, null);
  await Promise.all([first.stop(), second.stop()]);
  assert.deepEqual([second.status().role, second.status().waiting], ['stopped', null]);
});

test('the reason of a signal names what kept the lease from being renewed, and no other problem', async () => {
  const memory = await newGroup();
  const { broken, storage } = breakable(memory);
  const elector = member(storage, { warn: false });
  await started(elector);
  // Another make takes our name once: that stays a warning after this member has won the lease back.
  await putRecord(memory, { leaderID: 'a', leaderAddr: '', lastUpdated: new Date().toISOString() });
  await until(() => !elector.isLeader());
  const warned = await leads(elector);
  assert.match(elector.status().error, /serverId/);
  runtime.jumpTo(Date.now() + FAST.leaderTimeout + 100);
  await within(fired(warned.signal));
  assert.equal(warned.signal.reason.cause, undefined);
  const term = await leads(elector);
  broken.why = 'the cable is out';
  await within(fired(term.signal));
  const { code, cause } = term.signal.reason;
  assert.deepEqual([code, cause?.code], ['EDGELECT_LOST', 'EDGELECT_STORE']);
  assert.match(cause.message, /the cable is out/);
  broken.why = null;
  const next = await leads(elector);
  await elector.stop();
  assert.equal(next.signal.reason.cause, undefined, 'it was given up');
});

test('onStatus hears of each change, in order, and of no mere passing of time', async () => {
  const seen = [];
  const elector = member(new MemoryStorage(), { onStatus: ({ role, waiting }) => seen.push([role, waiting?.reason ?? null]) });
  await started(elector);
  await pause(3 * FAST.frequentInterval);
  await elector.stop();
  assert.deepEqual([seen.at(0), seen.at(-1)], [['candidate', 'store'], ['stopped', null]]);
  const roles = seen.map(([role]) => role).filter((role, at, all) => role !== all[at - 1]);
  assert.deepEqual(roles.slice(0, 2), ['candidate', 'leader']);
  assert.ok(seen.some(([, reason]) => reason === 'grace'));
  assert.ok(seen.length < 10, JSON.stringify(seen));
});

test('diagnostics channels tell of terms, problems and status', async () => {
  const heard = { term: [], error: [], status: [] };
  for (const [name, list] of Object.entries(heard)) subscribe(`edgelect:${name}`, (message) => list.push(message));
  const { broken, storage } = breakable(await newGroup());
  const elector = member(storage, { warn: false });
  const { token } = await started(elector);
  broken.why = 'trouble';
  await until(() => heard.error.length > 0);
  broken.why = null;
  await elector.stop();
  assert.deepEqual(heard.term.slice(0, 1), [{ group: KEY, term: token, how: 'acquired' }]);
  assert.equal(heard.term.find(({ how }) => how === 'lost').term, token);
  assert.match(heard.error[0].error.message, /trouble/);
  assert.ok(heard.status.some(({ role }) => role === 'leader'));
});

test('a listener that stops the elector gets in the way of no callback', async () => {
  const seen = [];
  const elector = member(await newGroup(), { onAcquireLeadership: () => void seen.push('acquired'), onLoseLeadership: () => void seen.push('lost') });
  const listener = ({ how }) => how === 'acquired' && void elector.stop({ release: false });
  subscribe('edgelect:term', listener);
  try {
    await elector.start();
    await until(() => elector.status().role === 'stopped');
    assert.deepEqual(seen, ['acquired', 'lost']);
  } finally {
    unsubscribe('edgelect:term', listener);
  }
});

test('a member shows its status, and of a session that is its name the beginning alone', async () => {
  const elector = member(await newGroup(), { serverId: undefined });
  assert.equal((await (await asked(elector)).json()).role, 'stopped');
  await started(elector);
  const { session, serverId, leaderId } = elector.status();
  assert.deepEqual([serverId, leaderId], [session, session]);
  const text = await (await asked(elector)).text();
  const name = `${session.slice(0, 8)}…`;
  const shown = JSON.parse(text);
  assert.deepEqual([shown.role, shown.serverId, shown.leaderId, 'session' in shown], ['leader', name, name, false]);
  assert.ok(!text.includes(session.slice(0, 9)));
  assert.equal((await asked(elector, undefined, { method: 'POST' })).status, 405);
  await elector.stop();
});

const SECRET = 'connect postgres://app:hunter2@db';
const throwing = () => Promise.reject(new Error(SECRET));
const ofS3 = (bucket) => ({ endpoint: 'http://127.0.0.1:1', bucket, region: 'auto', pathStyle: true, credentials: throwing });

for (const [name, [storage, shown, lockfilePath = KEY]] of Object.entries({
  'a storage': [{ get: throwing, putIfMatch: throwing }, /^custom storage, key "a": it failed; the log says why$/],
  'a storage with a quote in its key': [{ get: throwing, putIfMatch: throwing }, /^custom storage, key "a\\": \\"b": it failed; the log says why$/, 'a": "b'],
  'a locker': [{ tryAcquire: throwing, renew: throwing, release: throwing }, /^locker, key "a": it failed; the log says why$/],
  'a provider of S3': [new S3Storage(ofS3('jobs')), /^S3 bucket "jobs" at http:\/\/127\.0\.0\.1:1: the credentials provider failed; the log says why$/],
  'a provider over epochs': [new EpochStorage(ofS3('jobs')), /^S3 .*: the credentials provider failed; the log says why$/],
  'a provider of DynamoDB': [new DynamoDBStorage({ table: 'jobs', region: 'eu-central-1', credentials: throwing }), /^DynamoDB .*: the credentials provider failed; the log says why$/],
})) {
  test(`what ${name} threw is shown to its own program alone`, async () => {
    const electors = new Electors({ storage, ...FAST, lockfilePath: undefined, serverId: 'a', warn: false, page: true });
    const elector = electors.add(lockfilePath);
    atEnd(() => within(electors.stop()));
    await elector.start();
    await until(() => elector.status().error?.includes(SECRET));
    for (const one of [elector, electors]) {
      for (const path of ['/status.json', `/status.json?group=${encodeURIComponent(lockfilePath)}`, '/metrics', '/', '/health/leadership']) {
        assert.doesNotMatch(await (await asked(one, path)).text(), /hunter2/, path);
      }
    }
    assert.match((await (await asked(elector)).json()).error, shown);
  });
}

test('what a callback threw, and a storage that fails for good, is shown to its own program alone', async () => {
  // Deno's word for what its permissions forbid.
  const forbidden = () => Promise.reject(Object.assign(new Error(SECRET), { name: 'NotCapable' }));
  for (const [storage, onAcquireLeadership, shown] of [
    [await newGroup(), throwing, 'onAcquireLeadership threw'],
    [{ get: forbidden, putIfMatch: forbidden }, undefined, 'custom storage, key "a": it failed; the log says why'],
  ]) {
    const elector = member(storage, { warn: false, onAcquireLeadership });
    const starting = elector.start();
    if (!onAcquireLeadership) await assert.rejects(starting, { code: 'EDGELECT_STORE' });
    await until(() => elector.status().error?.includes(SECRET));
    assert.equal((await (await asked(elector)).json()).error, shown);
    await elector.stop();
  }
});
