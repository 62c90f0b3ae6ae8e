import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startEndpoint } from './slots-endpoint.mjs';

const closing = [];
after(() => Promise.all(closing.map((endpoint) => endpoint.close())));

const rig = async (jobOf = () => ({ status: 200, ms: 0 })) => {
  const told = [];
  const endpoint = await startEndpoint({ group: 'g', jobOf, tell: (entry) => told.push(entry) });
  closing.push(endpoint);
  const call = async (slot, term, more = {}, token = term) => {
    const body = JSON.stringify({ group: 'g', slot, term, serverId: 'a', ...more });
    const answer = await fetch(endpoint.url, { method: 'POST', headers: { 'content-type': 'application/json', 'edgelect-token': String(token) }, body });
    return answer.status;
  };
  return { told, endpoint, call };
};

test('a call is told when it begins and when it ends, and answered as its slot and its count say', async () => {
  const { told, call, endpoint } = await rig((slot, count) => ({ status: count === 0 ? 500 : 200, ms: slot }));
  assert.deepEqual([await call(1, 10), await call(1, 11)], [500, 200]);
  assert.deepEqual(told.map(({ event, run, slot, token, member, accepted, status }) => [event, run, slot, token, member, accepted ?? status]), [
    ['begin', 1, 1, 10, 'a', true], ['end', 1, 1, 10, 'a', 500], ['begin', 2, 1, 11, 'a', true], ['end', 2, 1, 11, 'a', 200],
  ]);
  assert.equal(endpoint.highest, 11);
});

test('a lower token than one that came is refused, whether that one was done or not, and counts as no call', async () => {
  const { told, call } = await rig((_slot, count) => ({ status: count === 0 ? 200 : 500, ms: 0 }));
  assert.deepEqual([await call(1, 11), await call(2, 9), await call(3, 10), await call(2, 11)], [200, 409, 409, 200]);
  assert.deepEqual(told.filter(({ event }) => event === 'begin').map(({ accepted }) => accepted), [true, false, false, true]);
});

test('what is not the documented call is answered 400 and told to nobody', async () => {
  const { told, call } = await rig();
  assert.deepEqual([await call(1, 10, { group: 'h' }), await call(1, 10, {}, 11), await call('1', 10), await call(1, 10, { more: 1 })], [400, 400, 400, 400]);
  assert.equal(told.length, 0);
});
