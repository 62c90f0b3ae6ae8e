// The Worker's entry: hands Cloudflare's events to the wasm as texts, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import { RawWorker, __wbg_reset_state, initSync } from '../build/worker/edgelect.js';
import { Refused, groupAt, groupsFor } from './groups.js';
import { Host, thisIsWorkers } from './host.js';
import { callJob } from './job.js';
import { R2Storage, isR2Bucket } from './r2.js';

thisIsWorkers();
initSync({ module });
let worker = new RawWorker();
/** What ends each event under way when the instance of the wasm breaks down. */
const events = new Set();

export default {
  async fetch(request, env) {
    const { method, url } = request;
    const { status, etag, body, problem } = await answered(env, method, url);
    if (problem) console.error(`edgelect: ${problem}`);
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    if (etag) headers.etag = etag;
    if (status === 405) headers.allow = 'GET';
    return new Response(body, { status, headers });
  },

  async scheduled(event, env) {
    let groups;
    try {
      groups = groupsFor(env, event.cron);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      console.error(`edgelect: ${error.message}`);
      throw new Error(`edgelect: ${error.variable}; the log says why`);
    }
    if (groups.length === 0) console.warn(`edgelect: no group is for the trigger "${event.cron}"; see EDGELECT_CRON`);
    const ends = await Promise.all(groups.map((group) => tick(group, event)));
    // Only now: an event that has failed may take with it what is still under way. Thrown, because nothing else makes
    // Cloudflare count a trigger as failed.
    const failed = ends.filter((end) => end !== undefined);
    if (failed.length > 0) throw new Error(`edgelect: ${failed.join(', ')}; the log says why`);
  },
};

/** One group's part of a trigger, told in the log under the group's name; resolves to a few words where somebody should
 * look. */
async function tick(group, { scheduledTime, cron }) {
  const name = group.name === undefined ? '' : `group=${group.name} `;
  try {
    const { line, problem, variable } = await ofGroup({ ...group, cron }, (texts, host) => worker.scheduled(Math.max(scheduledTime, 0), texts, host));
    if (problem === undefined) return void console.log(`edgelect tick: ${name}${line}`);
    console.error(`edgelect: ${name}${problem}`);
    return name + (variable ?? /^outcome=(\w+)/.exec(problem)?.[1] ?? 'failed');
  } catch (error) {
    console.error(`edgelect: ${name}${error}`);
    return `${name}broken`;
  }
}

async function answered(env, method, url) {
  try {
    const group = groupAt(env, new URL(url).searchParams.get('group'));
    if (!group) return { status: 404, body: '{"error":"no such group"}' };
    const answer = await ofGroup(group, (texts, host) => worker.fetch(method, url, texts, host));
    return answer.variable ? notConfigured(answer) : answer;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return notConfigured({ variable: error.variable, problem: error.message });
  }
}

/** Names the variable and nothing of its value, which may be a secret in the wrong place. */
function notConfigured({ variable, problem }) {
  return { status: 500, body: JSON.stringify({ error: 'edgelect is not configured', variable }), problem };
}

/** Moves one event of one group to its end. A variable that it could not use is told by the name under which it was set. */
async function ofGroup({ env, source, cron }, begin) {
  const storage = isR2Bucket(env.EDGELECT_R2) ? new R2Storage(env.EDGELECT_R2) : undefined;
  const job = (order, signal) => callJob(order, env.JOB, signal);
  const texts = variables(env, cron);
  const end = await handled((host) => begin(texts, host), { storage, job });
  const { variable, problem } = end;
  if (!variable) return end;
  const set = source(variable);
  return { ...end, variable: set, problem: problem.replace(`${variable} = `, () => `${set} = `) };
}

/** Says that an event met a broken instance before anything of it had left. */
class NothingDone extends Error {}

async function handled(begin, means) {
  try {
    return await moved(begin, means);
  } catch (error) {
    if (!(error instanceof NothingDone)) throw error;
  }
  try {
    return await moved(begin, means);
  } catch (error) {
    throw error instanceof NothingDone ? error.cause : error;
  }
}

/** Moves one event through the wasm until it has ended; `means` are what the host calls besides what every runtime has. */
async function moved(begin, means) {
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
    const host = new Host({ ...means, settle: (...how) => turn(() => raw.settle(...how)) });
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
// A bucket is told by `true`, and whatever else has no text by `null`, which is refused by name where a text is needed.
function variables(env, cron) {
  const texts = typeof cron === 'string' ? { cron } : {};
  for (const [name, value] of Object.entries(env)) {
    if (!/^(EDGELECT|AWS)_/.test(name) || value === null || value === undefined) continue;
    if (name === 'EDGELECT_R2') texts[name] = isR2Bucket(value) || (value === '' ? '' : null);
    else texts[name] = ['string', 'boolean', 'number'].includes(typeof value) ? String(value) : null;
  }
  const { JOB } = env;
  if (JOB !== undefined && JOB !== null && JOB !== '') texts.JOB = typeof JOB.fetch === 'function' ? '(bound)' : null;
  return JSON.stringify(texts);
}
