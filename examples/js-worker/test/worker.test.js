import { createExecutionContext, createScheduledController, reset, waitOnExecutionContext } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Elector, R2Storage } from 'edgelect';
import worker from '../src/index.js';

const MINUTE = 60_000;
const KEY = 'leader/report.json';
/** The newest slot that the group has claimed before the test. */
const EARLIER = Math.floor(Date.now() / MINUTE) * MINUTE - 5 * MINUTE;
const logged = [];

beforeEach(async () => {
  logged.length = 0;
  vi.spyOn(console, 'log').mockImplementation((_time, outcome) => logged.push(outcome));
  await env.EDGELECT_R2.put('orders.json', '[{}, {}, {}]');
  await new Elector({ storage: new R2Storage(env.EDGELECT_R2), lockfilePath: KEY }).init();
  // In a group that was made just now all slots up to now count as claimed; this one has run a job before.
  const acquired = new Date(EARLIER).toISOString();
  await env.EDGELECT_R2.put(KEY, JSON.stringify({ ...(await json(KEY)), slot: EARLIER, acquired }));
});

afterEach(async () => {
  vi.restoreAllMocks();
  await reset();
});

const json = async (key) => (await env.EDGELECT_R2.get(key))?.json();

const fire = async (scheduledTime) => {
  const context = createExecutionContext();
  try {
    const controller = createScheduledController({ scheduledTime: new Date(scheduledTime), cron: '* * * * *' });
    await worker.scheduled(controller, env, context);
  } finally {
    await waitOnExecutionContext(context);
  }
};

/** How often the job has written a report, by slot. */
const written = () => {
  const counts = {};
  const { put } = env.EDGELECT_R2;
  vi.spyOn(env.EDGELECT_R2, 'put').mockImplementation(function (key, ...rest) {
    if (key.startsWith('reports/')) counts[key] = (counts[key] ?? 0) + 1;
    return put.call(this, key, ...rest);
  });
  return counts;
};

test('of three triggers for one slot, two at once and one late, one runs the job; the next slot runs', async () => {
  const counts = written();
  await Promise.all([fire(EARLIER + MINUTE), fire(EARLIER + MINUTE)]);
  await fire(EARLIER + MINUTE);
  expect(counts).toEqual({ [`reports/${EARLIER + MINUTE}.json`]: 1 });
  const { orders, token } = await json(`reports/${EARLIER + MINUTE}.json`);
  expect(orders).toBe(3);
  await fire(EARLIER + 2 * MINUTE);
  expect(Object.values(counts)).toEqual([1, 1]);
  expect((await json(`reports/${EARLIER + 2 * MINUTE}.json`)).token).toBeGreaterThan(token);
  expect(logged.toSorted()).toEqual(['done', 'done', 'taken', 'taken']);
});

test('a job that throws fails its trigger, is recorded, and is not run again; the slot after it runs', async () => {
  const counts = written();
  await env.EDGELECT_R2.delete('orders.json');
  await expect(fire(EARLIER + MINUTE)).rejects.toThrow('there is no orders.json to report on');
  expect(await json(KEY)).toMatchObject({ slot: EARLIER + MINUTE, slotDone: false, slotResult: 'failed' });
  await env.EDGELECT_R2.put('orders.json', '[]');
  await fire(EARLIER + MINUTE);
  expect(counts).toEqual({});
  await fire(EARLIER + 2 * MINUTE);
  expect(counts).toEqual({ [`reports/${EARLIER + 2 * MINUTE}.json`]: 1 });
});

test('fetch says what became of the newest slot, and 404 where there is no lease object yet', async () => {
  await fire(EARLIER + MINUTE);
  const answer = await exports.default.fetch('https://example.com/');
  expect(answer.status).toBe(200);
  const { token } = await json(`reports/${EARLIER + MINUTE}.json`);
  expect(await answer.json()).toMatchObject({ slot: EARLIER + MINUTE, slotDone: true, slotResult: 'ok', term: token });
  await env.EDGELECT_R2.delete(KEY);
  expect((await exports.default.fetch('https://example.com/')).status).toBe(404);
});
