// Providers of credentials: what is kept of their answers, and when they are asked again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoize } from '@smithy/core/config';
import { Elector, S3Storage } from 'edgelect';
import { keeper } from '../../js/credentials.js';
import { atEnd } from './ending.mjs';
import { virtualRuntime } from './virtual.mjs';

const { pass, passing, bucket, jumpTo } = virtualRuntime();
const KEY = 'leader/keys.json';
const MINUTE = 60_000;
const WHOLE = { accessKeyId: 'first', secretAccessKey: 's' };

/** A storage over a bucket that knows one key at a time, `world.key`; `provide(world)` gives the credentials. */
const worldOf = (provide) => {
  const [front, store] = [bucket(), bucket()];
  const world = { key: 'first', asked: 0, refused: 0, losses: [] };
  front.answerWith(async (_url, init) => {
    if (init.headers.authorization.includes(`Credential=${world.key}/`)) return fetch(`${store.endpoint}/jobs`, init);
    world.refused += 1;
    return new Response('<Error><Code>InvalidAccessKeyId</Code></Error>', { status: 403, headers: { date: new Date().toUTCString() } });
  });
  const credentials = async () => {
    world.asked += 1;
    return provide(world);
  };
  world.storage = new S3Storage({ endpoint: front.endpoint, bucket: 'jobs', credentials });
  const onLoseLeadership = ({ reason }) => world.losses.push(reason);
  world.elector = new Elector({ storage: world.storage, lockfilePath: KEY, serverId: 'a', probe: false, onLoseLeadership });
  atEnd(() => passing(world.elector.stop()));
  return world;
};

const leadingWith = async (provide) => {
  const world = worldOf(provide);
  await passing(world.elector.init());
  await world.elector.start();
  await pass(5_000);
  assert.equal(world.elector.isLeader(), true);
  return world;
};

const NAMED = {
  'no object': null, 'an empty object': {}, 'no secret': { accessKeyId: 'first' }, 'a number': { ...WHOLE, secretAccessKey: 7 },
  'two lines': { ...WHOLE, secretAccessKey: 's\n' },
};
for (const [name, bad] of Object.entries(NAMED)) {
  test(`credentials that are still good are not replaced by a provider that gives ${name} once`, async () => {
    const world = await leadingWith(({ asked }) => {
      const expiration = Date.now() + 90_000;
      return asked === 2 ? bad : { ...WHOLE, ...(asked === 1 && { expiration }) };
    });
    await pass(5 * MINUTE);
    assert.deepEqual([world.losses, world.elector.isLeader()], [[], true]);
    assert.equal(world.asked, 3, 'it is asked again at the next request');
  });
}

test('what a provider gives that is not whole is an error that names the field, until it gives better', async () => {
  let whole = false;
  const { elector } = worldOf(() => (whole ? WHOLE : { accessKeyId: 'first' }));
  await elector.start();
  await pass(5_000);
  assert.match(elector.status().error, /credentials provider failed: credentials\.secretAccessKey = \(undefined\): a provider gives/);
  whole = true;
  await pass(2 * MINUTE);
  assert.equal(elector.isLeader(), true);
});

test('a key that was rotated costs a leader no term: the provider is asked once, and its new key is used', async () => {
  const world = await leadingWith(({ key }) => ({ accessKeyId: key, secretAccessKey: 's' }));
  assert.equal(world.asked, 1);
  world.key = 'second';
  await pass(MINUTE);
  assert.deepEqual([world.losses, world.elector.isLeader(), world.asked, world.refused], [[], true, 2, 1]);
});

test('several electors of one storage with a wrong key share its questions', async () => {
  const world = worldOf(() => WHOLE);
  world.key = 'second';
  const slots = [1, 2, 3, 4, 5, 6].map((count) => new Elector({ storage: world.storage, lockfilePath: `slot-${count}` })
    .runScheduled(Date.now(), () => assert.fail('no store, no job'), { budget: 30_000 }).catch(() => {}));
  await pass(3_000);
  assert.ok(world.asked <= 2 && world.refused > 10, `${world.asked} questions for ${world.refused} refusals`);
  await pass(MINUTE);
  await Promise.all(slots);
});

test('a provider that hung is asked again though the wall clock has stepped back', async (context) => {
  let asked = 0;
  const get = keeper(() => {
    asked += 1;
    return asked === 1 ? new Promise(() => {}) : WHOLE;
  });
  void get(false);
  const { now } = Date;
  context.mock.method(Date, 'now', () => now() - 60 * MINUTE);
  void get(false);
  assert.equal(asked, 1);
  jumpTo(now() + 11_000);
  assert.deepEqual([(await get(false)).accessKeyId, asked], ['first', 2]);
});

test('a provider that keeps what it gave, as those of the AWS SDK do, is asked for new keys where the store refuses those', async () => {
  let made = 0;
  const get = keeper(memoize(async () => ({ ...WHOLE, accessKeyId: `key-${(made += 1)}` })));
  const given = [await get(false), await get(false), await get(true)];
  assert.deepEqual(given.map(({ accessKeyId }) => accessKeyId), ['key-1', 'key-1', 'key-2']);
});

test('credentials that come late replace no newer ones', async () => {
  const answers = [];
  const get = keeper(() => new Promise((resolve) => answers.push(resolve)));
  const expiration = new Date(Date.now() + 600 * MINUTE);
  const first = get(false);
  jumpTo(Date.now() + 11_000);
  const second = get(false);
  assert.equal(answers.length, 2);
  answers[1]({ ...WHOLE, accessKeyId: 'newer', expiration });
  await second;
  answers[0]({ ...WHOLE, accessKeyId: 'older', expiration });
  await first;
  assert.equal((await get(false)).accessKeyId, 'newer');
});
