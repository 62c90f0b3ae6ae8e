// The Worker's entry: hands Cloudflare's events to the wasm as texts, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import * as edgelect from '../build/worker/edgelect.js';

edgelect.initSync({ module });
let worker = new edgelect.RawWorker();

export default {
  async fetch(request, env) {
    const { status, etag, body, problem } = JSON.parse(await sound().fetch(request.method, request.url, variables(env)));
    if (problem !== null) console.error(`edgelect: ${problem}`);
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    if (etag !== null) headers.etag = etag;
    if (status === 405) headers.allow = 'GET';
    return new Response(body, { status, headers });
  },

  async scheduled(event, env) {
    try {
      console.log(`edgelect tick: ${await sound().scheduled(Math.max(event.scheduledTime, 0), variables(env))}`);
    } catch (error) {
      console.error(`edgelect: ${error?.message ?? error}`);
    }
  },
};

// A panic leaves its instance half-changed, so the next event in this isolate gets a new one.
function sound() {
  if (edgelect.broken()) {
    console.error('edgelect: the wasm broke down; this event gets a new instance');
    edgelect.__wbg_reset_state();
    worker = new edgelect.RawWorker();
  }
  return worker;
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
  return JSON.stringify(texts);
}
