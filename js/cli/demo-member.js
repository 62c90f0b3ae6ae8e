// One member of `edgelect demo`, in a thread of its own; its store is in the main thread, a message away.
import { parentPort, workerData } from 'node:worker_threads';
import { Elector } from 'edgelect';

const PROVE_EVERY_MS = 50;

const answers = new Map();
let asked = 0;

const report = (event, more) => parentPort.postMessage({ event, atMs: Date.now(), ...more });
const ask = (event, ...args) => new Promise((resolve) => {
  asked += 1;
  answers.set(asked, resolve);
  parentPort.postMessage({ event, ask: asked, args });
});

const elector = new Elector({
  ...workerData,
  storage: {
    get: (key) => ask('get', key),
    // A copy, because posting a part of the wasm's memory would post all of it.
    putIfMatch: (key, body, etag) => ask('putIfMatch', key, body.slice(), etag),
  },
  // The screen shows what happens.
  warn: false,
  onAcquireLeadership: (term) => report('acquired', { term: term.token, remainingMs: term.remaining() }),
  onLoseLeadership: ({ term }) => report('lost', { term }),
});

parentPort.on('message', ({ command, token, ask: number, answer }) => {
  if (number !== undefined) {
    answers.get(number)(answer);
    answers.delete(number);
  }
  if (command === 'resign') void elector.resign();
  // Whoever writes too late does not know it, so nothing is checked here.
  if (command === 'write') report('write', { token });
});

setInterval(() => {
  const { role, term, remainingMs } = elector.status();
  if (role === 'leader' && remainingMs > 0) report('proven', { term, remainingMs });
}, PROVE_EVERY_MS);

await elector.start();
