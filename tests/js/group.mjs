// Members of one group on a storage in memory.
import { Elector, MemoryStorage } from 'edgelect';

export { until } from './until.mjs';

export const KEY = 'a';
export const FAST = { leaderTimeout: 1000, frequentInterval: 250, follow: 'tight', lockfilePath: KEY };

// Long enough that no lease runs out while the machine is busy, or a work looks twice at what another member does.
export const LONG = { leaderTimeout: 8000, frequentInterval: 200 };

const made = [];

export const member = (storage, options = {}) => {
  const elector = new Elector({ storage, serverId: 'a', ...FAST, ...options });
  made.push(elector);
  return elector;
};

/** Stops what a failed test left running, which would keep its process. */
export const stopAll = () => Promise.allSettled(made.map((elector) => within(elector.stop())));

export const newGroup = async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  return storage;
};

/** A leader in a group of its own, with what it was told of losses. */
export const leading = async (options = {}) => {
  const storage = await newGroup();
  const losses = [];
  const elector = member(storage, { onLoseLeadership: (loss) => losses.push(loss), ...options });
  await elector.start();
  return { elector, storage, losses, term: await leads(elector) };
};

/** The next term, or an error instead of a test that hangs. */
export const leads = (elector) => within(elector.waitForLeadership());

/** What a promise comes to, or an error instead of a test that hangs. */
export const within = async (promise, limitMs = 30_000) => {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

export const fired = (signal) =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

export const isReleased = (body) => new TextDecoder().decode(body).includes('0001-01-01T00:00:00Z');

/** Keeps the event loop busy, so that no timer runs. */
export const block = (ms) => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

/** A promise and what resolves it. */
export const gated = () => {
  const gate = {};
  gate.promise = new Promise((resolve) => {
    gate.resolve = resolve;
  });
  return gate;
};
