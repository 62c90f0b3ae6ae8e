// Peers of the deployed Worker: a tick that follows asks the leader in place of the store, and an answer is proven to who asked.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { S3Storage } from 'edgelect';
import { bucketOptions, until } from '../js/bucket.mjs';
import { peered } from '../js/peered.mjs';
import { kept, startProxy } from '../js/servers.mjs';
import { healthy, isolate, newGroup, outcomes, warm } from './isolate.mjs';

const SECRET = 'a-secret-of-this-group';
const NONCE = '00112233445566778899aabbccddeeff';
// Peers are asked on loopback only by members that are published there. Nobody answers at this address.
const ADDRESS = '127.0.0.1:1';
// A question may be held for what the lease leaves beside the timeout.
const TIMING = { EDGELECT_LEADER_TIMEOUT: '4000', EDGELECT_PEER_TIMEOUT: '1500', EDGELECT_REQUEST_TIMEOUT: '500', EDGELECT_SUSTAIN: '9000' };

/** A member that leads `group` in Node, and the questions that came. */
const leading = async (group, options = {}) => {
  const { elector, asked } = await peered({
    storage: new S3Storage(bucketOptions), lockfilePath: group.EDGELECT_LOCKFILE_PATH, serverId: 'a-server',
    leaderTimeout: 4_000, frequentInterval: 500, peerTimeout: 1_500, ...options,
  });
  await elector.start();
  await elector.waitForLeadership();
  return asked;
};

/** A Worker that ticks once beside a leader, and how often it has read the store meanwhile. */
const following = async (group, variables) => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const worker = await warm({ ...group, ...TIMING, ...variables, EDGELECT_ENDPOINT: proxy.endpoint });
  proxy.seen.length = 0;
  await worker.tick();
  await until(() => outcomes(worker).length === 1);
  assert.deepEqual([outcomes(worker), proxy.count('PUT')], [['followed'], 0]);
  return { reads: proxy.count('GET'), logged: worker.logged() };
};

/** What the secret proves of an answer. */
const proofOf = (nonce, status, body) => createHmac('sha256', SECRET).update(`edgelect answer\n${nonce}\n${status}\n${body}`).digest('hex');

describe('peers of the Worker', { concurrency: 3 }, () => {
  test('a tick that follows asks the leader in place of the store, and believes the answer that it proves', async () => {
    const group = await newGroup();
    const asked = await leading(group, { peerSecret: SECRET });
    const { reads, logged } = await following(group, { EDGELECT_PEER_MODE: 'true', EDGELECT_PEER_SECRET: SECRET, EDGELECT_SERVER_ADDR: ADDRESS });
    for (const { method, pathname, query } of asked) {
      assert.deepEqual([method, pathname, query.group, query.relay], ['GET', '/health/leadership', group.EDGELECT_LOCKFILE_PATH, ADDRESS]);
      assert.ok(/^[0-9a-f]{32}$/.test(query.nonce) && /^[0-9a-f]{64}$/.test(query.proof));
    }
    assert.ok(asked.some(({ query }) => Number(query.wait) > 0), 'who has proven itself is waited for');
    assert.ok(reads <= 3, `${reads} reads`);
    assert.ok(!logged.includes(SECRET) && !JSON.stringify(asked).includes(SECRET));
  });

  test('its own answers carry the proof of the nonce, whoever leads, and never the secret', async () => {
    const group = await newGroup();
    const worker = await isolate({ ...group, EDGELECT_PEER_MODE: 'true', EDGELECT_PEER_SECRET: SECRET });
    const path = `/health/leadership?group=${encodeURIComponent(group.EDGELECT_LOCKFILE_PATH)}`;
    const checked = async (answer) => {
      const body = await answer.text();
      assert.equal(answer.headers.get('edgelect-proof'), proofOf(NONCE, answer.status, body));
      assert.ok(![body, ...answer.headers.values()].some((text) => text.includes(SECRET)));
      return body;
    };
    const nobody = await worker.ask(`${path}&nonce=${NONCE}`);
    await checked(nobody);
    assert.equal(nobody.status, 404);
    const ticking = worker.tick();
    const leads = await until(healthy(worker, `${path}&nonce=${NONCE}`));
    assert.equal(JSON.parse(await checked(leads)).leaderID, 'the-worker');
    for (const unproven of [path, `${path}&nonce=no-hex`]) {
      const answer = await worker.ask(unproven);
      await answer.text();
      assert.equal(answer.headers.get('edgelect-proof'), null, unproven);
    }
    await ticking;
    assert.ok(!worker.logged().includes(SECRET));
  });
});
