// Runs slots of the deployed Worker on the main thread of a fresh Node, and prints as JSON how many milliseconds of that thread's
// CPU each took; the first of them is a fresh isolate's. `slot-isolate.mjs FILE COUNT [RECORD]`: FILE is the bundle's entry, RECORD
// the JSON of the lease object, without one that of a new group.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , file, count, given] = process.argv;
const ENDPOINT = 'https://s3.example';
const JOB_URL = 'https://job.example/run';
const PERIOD_MS = 1_000;
const VARIABLES = {
  EDGELECT_ENDPOINT: ENDPOINT,
  EDGELECT_BUCKET: 'jobs',
  EDGELECT_REGION: 'us-east-1',
  EDGELECT_PATH_STYLE: 'true',
  // AWS's own example pair, which opens nothing.
  EDGELECT_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  EDGELECT_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  EDGELECT_LOCKFILE_PATH: 'leader/report.json',
  EDGELECT_JOB_URL: JOB_URL,
};

/** What `init` leaves, with a slot of long ago. */
const NEW = JSON.stringify({
  format: 1, leaderID: 'edgelect', leaderAddr: '', lastUpdated: '0001-01-01T00:00:00Z', acquired: '2026-11-21T06:00:00Z', term: 1, session: 's',
  sequence: 1, leaseMs: 15_000, transitions: 0, parked: false, slot: 60_000, slotDone: true,
});

/** One object, as S3 answers for it; it has no clock but this machine's. */
const store = { body: given ?? NEW, versions: 0, modified: new Date(Date.now() - 60_000).toUTCString() };

const answer = (status, body, more = {}) => new Response(body, { status, headers: { date: new Date().toUTCString(), ...more } });
const refusal = (status, code) =>
  answer(status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`, { 'content-type': 'application/xml' });

const answers = {
  GET: () => answer(200, store.body, { etag: etagOf(store), 'last-modified': store.modified }),
  PUT: async (request) => {
    if (request.headers.get('if-match') !== etagOf(store)) return refusal(412, 'PreconditionFailed');
    store.body = await request.text();
    store.versions += 1;
    store.modified = new Date().toUTCString();
    return answer(200, null, { etag: etagOf(store) });
  },
  POST: async (request) => {
    await request.text();
    return answer(204, null);
  },
};

const etagOf = ({ versions }) => `"${String(versions).padStart(32, '0')}"`;

const requests = [];
globalThis.fetch = async (given, init) => {
  const request = new Request(given, init);
  requests.push(request.method);
  return answers[request.method](request);
};

// workerd hands the compiled module over, and has an event target for the whole isolate.
registerHooks({
  load: (url, context, next) => (url.endsWith('.wasm') ? { format: 'module', shortCircuit: true, source: moduleOf(url) } : next(url, context)),
});
const moduleOf = (url) => `import fs from 'node:fs'; export default new WebAssembly.Module(fs.readFileSync(new URL(${JSON.stringify(url)})));`;
globalThis.addEventListener = () => {};

const cpuMs = () => {
  // Linux counts what a thread has computed at its ticks; asked for the whole process it counts up to now.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** The CPU that some work takes of this thread. */
const measured = async (work) => {
  const beforeMs = cpuMs();
  await work();
  return cpuMs() - beforeMs;
};

/** The same four requests without a Worker: what Node and the store above take. */
const plain = async () => {
  const ask = async (method, body) => {
    const controller = new AbortController();
    const { signal } = controller;
    const headers = new Headers();
    for (const name of ['authorization', 'x-amz-date', 'x-amz-content-sha256']) headers.append(name, 'x');
    headers.append('if-match', etagOf(store));
    const asked = await fetch(new Request(`${ENDPOINT}/jobs/plain`, { method, headers, body, signal, redirect: 'manual' }), { signal });
    for (const name of ['date', 'etag', 'last-modified', 'age', 'via']) asked.headers.get(name);
    const reader = asked.body?.getReader();
    while (reader && !(await reader.read()).done);
    controller.abort();
  };
  crypto.getRandomValues(new Uint8Array(16));
  clearTimeout(setTimeout(() => {}, 1_000));
  const kept = { ...store };
  await ask('GET');
  for (const method of ['PUT', 'POST', 'PUT']) await ask(method, new Uint8Array(400));
  Object.assign(store, kept);
};

// Node's own fetch, streams and crypto are JavaScript that it compiles when it is first used; those of workerd are native.
const plainMs = [];
for (let round = 0; round < 20; round += 1) plainMs.push(await measured(plain));

let worker;
const startMs = await measured(async () => {
  ({ default: worker } = await import(pathToFileURL(file)));
});

console.log = () => {};
// Those of a new group are of an hour ago, so that others can follow them.
const before = Number(count) + (given === undefined ? 3_600 : 1);
const firstSlotMs = Math.floor(Date.now() / PERIOD_MS - before) * PERIOD_MS;
const slotMs = [];
requests.length = 0;
for (let slot = 0; slot < Number(count); slot += 1) {
  const event = { cron: '* * * * *', scheduledTime: firstSlotMs + slot * PERIOD_MS };
  slotMs.push(await measured(() => worker.scheduled(event, VARIABLES, {})));
}
process.stdout.write(JSON.stringify({ startMs, slotMs, plainMs: plainMs.at(-1), requests, record: store.body }));
