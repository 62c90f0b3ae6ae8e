// The Worker's entry: hands Cloudflare's events to the wasm as texts, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import { RawWorker, __wbg_reset_state, initSync } from '../build/worker/edgelect.js';
import { Host } from './host.js';
import { callJob } from './job.js';

initSync({ module });
let worker = new RawWorker();
/** What ends each event under way when the instance of the wasm breaks down. */
const events = new Set();

export default {
  async fetch(request, env) {
    const { method, url } = request;
    const answer = await handled(env, (host) => worker.fetch(method, url, variables(env), host));
    const { status, etag, body, problem } = answer;
    if (problem) console.error(`edgelect: ${problem}`);
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    if (etag) headers.etag = etag;
    if (status === 405) headers.allow = 'GET';
    return new Response(body, { status, headers });
  },

  async scheduled(event, env) {
    const { line, problem } = await handled(env, (host) => worker.scheduled(Math.max(event.scheduledTime, 0), variables(env), host));
    if (problem) console.error(`edgelect: ${problem}`);
    else console.log(`edgelect tick: ${line}`);
  },
};

/** Says that an event met a broken instance before anything of it had left. */
class NothingDone extends Error {}

async function handled(env, begin) {
  try {
    return await moved(env, begin);
  } catch (error) {
    if (!(error instanceof NothingDone)) throw error;
  }
  try {
    return await moved(env, begin);
  } catch (error) {
    throw error instanceof NothingDone ? error.cause : error;
  }
}

/** Moves one event through the wasm until it has ended. */
async function moved(env, begin) {
  return new Promise((resolve, reject) => {
    let raw;
    let left = false;
    const turn = (what) => {
      if (raw && !events.has(end)) return;
      try {
        what();
        const ended = raw.poll();
        if (ended === undefined) {
          left = true;
          return host.startAll();
        }
        end();
        raw.free();
        resolve(JSON.parse(ended));
      } catch (error) {
        reject(left ? error : new NothingDone('', { cause: error }));
        replace(error);
      }
    };
    const job = (order, signal) => callJob(order, env.JOB, signal);
    const host = new Host({ job, settle: (...how) => turn(() => raw.settle(...how)) });
    const end = (error) => {
      events.delete(end);
      host.close();
      if (error) reject(error);
    };
    events.add(end);
    turn(() => {
      raw = begin(host);
    });
  });
}

// A trap leaves its instance half-changed: whatever is under way in it ends, and the next event gets a new one.
function replace(error) {
  console.error('edgelect: the wasm broke down; the next event gets a new instance');
  for (const end of [...events]) end(error);
  __wbg_reset_state();
  worker = new RawWorker();
}

// Variables and secrets as the texts that they would be in an environment; wrangler.toml may give a number or a flag.
// What has no text is kept as something that no option accepts, so that it is refused by name.
function variables(env) {
  const texts = {};
  for (const name of Object.keys(env)) {
    const value = env[name];
    if (!/^(EDGELECT|AWS)_/.test(name) || value === null || value === undefined) continue;
    const plain = typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
    texts[name] = plain ? String(value) : '(no text)\0';
  }
  if (typeof env.JOB?.fetch === 'function') texts.JOB = '(bound)';
  return JSON.stringify(texts);
}
