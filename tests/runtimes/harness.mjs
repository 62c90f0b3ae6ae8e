// As much of a test framework as runs everywhere: in a Worker there is none.

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const ok = (holds, message = 'does not hold') => {
  if (!holds) throw new Error(message);
};

/** Compares by value: everything here is plain data. */
export const equal = (actual, expected, message = '') => {
  const [one, other] = [actual, expected].map((value) => JSON.stringify(value) ?? 'undefined');
  if (one !== other) throw new Error(`${message} expected ${other}, got ${one}`.trim());
};

export const caught = async (call) => {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown: ${call}`);
};

export const until = async (holds, limitMs = 30_000) => {
  const endMs = Date.now() + limitMs;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > endMs) throw new Error(`not within ${limitMs} ms: ${holds}`);
    await pause(20);
  }
};

/** A store's lane in the rig; see rig.mjs. */
export const openLane = async ({ rigUrl }, options = {}) => {
  const call = async (method, path, body) => {
    const response = await fetch(`${rigUrl}${path}`, { method, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`the rig: ${await response.text()}`);
    return response.json();
  };
  const { id, endpoint } = await call('POST', '/lanes', options);
  return {
    endpoint,
    seen: async () => (await call('GET', `/lanes/${id}`)).seen,
    answer: (...rules) => call('PUT', `/lanes/${id}`, { rules }),
  };
};

/** The one value of a header as it came in; an array where it came more than once. */
export const header = ({ rawHeaders }, name) => {
  const values = rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1].toLowerCase() === name);
  return values.length > 1 ? values : values[0];
};

/**
 * Runs `[name, test]`s, some at a time, and gives `{ passed, failed, table }`. `rejections` is filled by the runner's listener:
 * one that is planted here must arrive, and no other may.
 */
export const runAll = async (tests, context, rejections) => {
  const [passed, failed] = [[], []];
  const table = {};
  const one = async ([name, test]) => {
    try {
      await test({ ...context, table });
      passed.push(name);
    } catch (error) {
      failed.push({ name, why: String(error?.stack ?? error).split('\n').slice(0, 6).join('\n') });
    }
  };
  const waiting = [...tests];
  const worker = async () => {
    while (waiting.length > 0) await one(waiting.shift());
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  await one(['no path leaves a rejection unhandled, and one that is planted is heard', async () => {
    void Promise.reject(new Error('planted'));
    await until(() => rejections.some((reason) => reason.includes('planted')));
    equal(rejections.filter((reason) => !reason.includes('planted')), []);
  }]);
  return { passed, failed, table };
};
