// Calls one function of the parts for each request: POST /NAME with its arguments as JSON; `"$bucket"` and the like stand
// for the event's own. The result is answered as text.
import module from '../../build/rust-worker/parts_bg.wasm';
import * as parts from '../../build/rust-worker/parts.js';

parts.initSync({ module });

const inGlobalScope = parts.random();
const { setTimeout, clearTimeout } = globalThis;

/** Counts the timers that are set and neither fired nor given back, while `work` runs and after it. */
const timers = async (work) => {
  const pending = new Set();
  globalThis.setTimeout = (callback, ms, ...given) => {
    const id = setTimeout(() => {
      pending.delete(id);
      callback(...given);
    }, ms);
    pending.add(id);
    return id;
  };
  globalThis.clearTimeout = (id) => {
    pending.delete(id);
    clearTimeout(id);
  };
  try {
    return `${await work()} ${pending.size}`;
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
  }
};

const own = {
  globalRandom: () => inGlobalScope,
  countedSleep: (ms, stopAfterMs) => timers(() => parts.sleep(ms, stopAfterMs)),
  // The end of an event ends its connections too; so the event goes on until the test lets it end.
  thenWait: async (waitUrl, name, ...given) => {
    const answer = await parts[name](...given);
    await fetch(waitUrl);
    return answer;
  },
  /** What the clock looks like before, at and after the due time of a pending timer, and once it has fired there. */
  held: async () => {
    const { now } = Date;
    const startMs = now();
    const host = new parts.Held();
    const seen = [];
    const look = (ms) => {
      Date.now = () => startMs + ms;
      seen.push(host.now());
    };
    try {
      Date.now = () => startMs;
      const slept = host.sleep(50);
      // The timer is set once the task has been polled.
      await null;
      await new Promise((resolve) => queueMicrotask(resolve));
      for (const ms of [0, 49, 50, 51]) look(ms);
      Date.now = () => startMs + 40;
      await slept;
      for (const ms of [40, 50]) look(ms);
    } finally {
      Date.now = now;
    }
    return seen.join(', ');
  },
  /** The error of a request that the runtime refuses with this text. */
  refused: async (text) => {
    const { fetch } = globalThis;
    globalThis.fetch = () => Promise.reject(new TypeError(text));
    try {
      return await parts.fetch('http://127.0.0.1/', '', 10);
    } finally {
      globalThis.fetch = fetch;
    }
  },
  /** A read of an object that is too large, and whether its body was given back unread. */
  large: async () => {
    let cancelled = false;
    const body = new ReadableStream({ cancel: () => void (cancelled = true) });
    const arrayBuffer = () => Promise.reject(new Error('read to its end'));
    const get = async () => ({ httpEtag: '"1"', size: 65_537, uploaded: new Date(1_000), body, bodyUsed: false, arrayBuffer });
    return `${await parts.readR2({ get, put: () => {} }, 'a')} ${cancelled}`;
  },
  /** A read of a bucket whose every operation fails. */
  failing: () => parts.readR2({ get: () => Promise.reject(new Error('get: internal error (10001)')), put: () => {} }, 'a'),
};

export default {
  async fetch(request, env) {
    const name = new URL(request.url).pathname.slice(1);
    const { EDGELECT_R2 } = env;
    const lease = { EDGELECT_LOCKFILE_PATH: 'key', EDGELECT_FORMAT: 'kubernetes' };
    const stands = { $bucket: EDGELECT_R2, $s3: { ...env, ...lease }, $r2: { EDGELECT_R2, ...lease } };
    const given = (await request.json()).map((one) => stands[one] ?? one);
    return new Response(String(await (own[name] ?? parts[name])(...given)));
  },
};
