// Providers of credentials: what is kept of their answers, and when they are asked again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, S3Storage } from 'edgelect';
import { virtualRuntime } from './virtual.mjs';

const { pass, bucket } = virtualRuntime();
const KEY = 'leader/keys.json';
const MINUTE = 60_000;

/** A leader over a bucket that knows one key at a time; `provide` gives the credentials. */
const leadingWith = async (provide) => {
  const { endpoint, answerWith } = bucket();
  const world = { key: 'first', asked: 0, refused: 0, losses: [] };
  const store = bucket();
  const inner = store.endpoint;
  answerWith(async (_url, init) => {
    const known = init.headers.authorization.includes(`Credential=${world.key}/`);
    if (known) return fetch(`${inner}/jobs`, init);
    world.refused += 1;
    return new Response('<Error><Code>InvalidAccessKeyId</Code></Error>', { status: 403, headers: { date: new Date().toUTCString() } });
  });
  const credentials = async () => {
    world.asked += 1;
    return provide(world);
  };
  const storage = new S3Storage({ endpoint, bucket: 'jobs', credentials });
  const onLoseLeadership = ({ reason }) => world.losses.push(reason);
  world.elector = new Elector({ storage, lockfilePath: KEY, serverId: 'a', probe: false, onLoseLeadership });
  const made = world.elector.init();
  await pass(1_000);
  await made;
  await world.elector.start();
  await pass(5_000);
  assert.equal(world.elector.isLeader(), true);
  return world;
};

const stop = async ({ elector }) => {
  const stopped = elector.stop();
  await pass(2 * MINUTE);
  await stopped;
};

const NAMED = { 'no object': null, 'an empty object': {}, 'no secret': { accessKeyId: 'first' }, 'a number': { accessKeyId: 'first', secretAccessKey: 7 } };
for (const [name, bad] of Object.entries(NAMED)) {
  test(`credentials that are still good are not replaced by a provider that gives ${name} once`, async () => {
    const world = await leadingWith(({ asked }) => {
      const expiration = Date.now() + 90_000;
      return asked === 2 ? bad : { accessKeyId: 'first', secretAccessKey: 's', ...(asked === 1 && { expiration }) };
    });
    await pass(5 * MINUTE);
    assert.deepEqual([world.losses, world.elector.isLeader()], [[], true]);
    assert.equal(world.asked, 3, 'it is asked again at the next request');
    await stop(world);
  });
}

test('what a provider gives that is not whole is an error that names the field, until it gives better', async () => {
  let whole = false;
  const { endpoint } = bucket();
  const credentials = () => (whole ? { accessKeyId: 'k', secretAccessKey: 's' } : { accessKeyId: 'k' });
  const elector = new Elector({ storage: new S3Storage({ endpoint, bucket: 'jobs', credentials }), lockfilePath: KEY, probe: false });
  await elector.start();
  await pass(5_000);
  assert.match(elector.status().error, /credentials provider failed: credentials\.secretAccessKey = \(undefined\): a provider gives/);
  whole = true;
  await pass(2 * MINUTE);
  assert.equal(elector.isLeader(), true);
  await stop({ elector });
});

test('a key that was rotated costs a leader no term: the provider is asked once, and its new key is used', async () => {
  const world = await leadingWith(({ key }) => ({ accessKeyId: key, secretAccessKey: 's' }));
  assert.equal(world.asked, 1);
  world.key = 'second';
  await pass(MINUTE);
  assert.deepEqual([world.losses, world.elector.isLeader(), world.asked, world.refused], [[], true, 2, 1]);
  await stop(world);
});

test('a key that is simply wrong does not cost a question for each request', async () => {
  const world = await leadingWith(() => ({ accessKeyId: 'first', secretAccessKey: 's' }));
  world.key = 'second';
  await pass(MINUTE);
  assert.ok(world.asked >= 3 && world.asked <= 7 && world.refused > world.asked, `${world.asked} questions for ${world.refused} refusals`);
  assert.deepEqual(world.losses, ['expired']);
  await stop(world);
});

test('several electors of one storage with a wrong key share its questions', async () => {
  const { endpoint, answerWith } = bucket();
  let [asked, refused] = [0, 0];
  answerWith(async () => {
    refused += 1;
    return new Response('<Error><Code>InvalidAccessKeyId</Code></Error>', { status: 403 });
  });
  const credentials = () => {
    asked += 1;
    return { accessKeyId: 'k', secretAccessKey: 's' };
  };
  const storage = new S3Storage({ endpoint, bucket: 'jobs', credentials });
  const slots = [1, 2, 3, 4, 5, 6].map((count) => new Elector({ storage, lockfilePath: `slot-${count}` })
    .runScheduled(Date.now(), () => assert.fail('no store, no job'), { budget: 30_000 }).catch(() => {}));
  await pass(3_000);
  assert.ok(asked <= 2 && refused > 10, `${asked} questions for ${refused} refusals`);
  await pass(MINUTE);
  await Promise.all(slots);
});
