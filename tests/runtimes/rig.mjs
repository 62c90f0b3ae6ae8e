// A rig of faulty servers on loopback for the suite, which can't start servers in every runtime: the suite opens lanes
// over HTTP, says how each one answers, and asks what came in.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { gzipSync } from 'node:zlib';

const PEM = fs.readFileSync(new URL('self-signed.pem', import.meta.url));
const HTML = '<!doctype html><html><head><title>Welcome</title></head><body>It works!</body></html>';
const MIB = 1 << 20;

/** Starts the rig in front of a real store. `url` is where the suite opens its lanes. */
export const startRig = async (store) => {
  const lanes = new Map();
  const control = http.createServer(async (request, response) => {
    try {
      const answer = await obey(lanes, store, request);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } catch (error) {
      response.writeHead(500).end(String(error.stack));
    }
  });
  const url = await listen(control);
  return {
    url,
    close: async () => {
      await Promise.all([...lanes.values()].map((lane) => lane.close()));
      await closed(control);
    },
  };
};

/** `POST /lanes` opens one, `PUT /lanes/N` changes its answers, `GET /lanes/N` tells what it saw. */
const obey = async (lanes, store, request) => {
  const [, , id] = request.url.split('/');
  const text = String(await readAll(request));
  if (request.method === 'POST') {
    const lane = await openLane(store, JSON.parse(text));
    lanes.set(lane.id, lane);
    return { id: lane.id, endpoint: lane.endpoint };
  }
  const lane = lanes.get(id);
  if (request.method === 'PUT') {
    lane.rules = JSON.parse(text).rules;
    return {};
  }
  return { seen: lane.seen };
};

/** One server. Its rules are looked through in order for each request; one that has none goes to the store. */
const openLane = async (store, { kind = 'http', rules = [] }) => {
  const lane = { rules, seen: [] };
  const onRequest = (request, response) => answer(lane, store, request, response);
  const server = kind === 'https' ? https.createServer({ key: PEM, cert: PEM }, onRequest) : http.createServer(onRequest);
  const origin = await listen(server);
  lane.id = origin.split(':').at(-1);
  lane.endpoint = kind === 'https' ? origin.replace('http:', 'https:') : origin;
  lane.close = () => closed(server);
  if (kind === 'closed') await lane.close();
  return lane;
};

const answer = async (lane, store, request, response) => {
  const { method, url, rawHeaders } = request;
  const seen = { method, url, rawHeaders, bytes: 0, status: null, sent: false, closedMs: null };
  const startMs = performance.now();
  lane.seen.push(seen);
  response.once('finish', () => (seen.sent = true));
  response.once('close', () => {
    seen.status = response.headersSent ? response.statusCode : null;
    seen.closedMs = Math.round(performance.now() - startMs);
  });
  const rule = lane.rules.find((one) => (one.method ?? method) === method && url.includes(one.path ?? '') && one.times !== 0);
  if (rule?.times) rule.times -= 1;
  const body = await readAll(request).catch(() => Buffer.alloc(0));
  seen.bytes = body.length;
  if (!rule) return pass(store, request, body, response);
  await faults[rule.fault ?? 'answer'](rule, response, { store, request, body });
};

const faults = {
  answer: ({ status, headers = {}, body = '' }, response) => response.writeHead(status, headers).end(body),
  web: ({ status, headers = {} }, response) => response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(HTML),
  hang: () => {},
  // Headers at once, a body that never ends.
  hangBody: ({ status = 200 }, response) => response.writeHead(status, { etag: '"1"' }).write('{"leaderID":'),
  reset: (_rule, response) => response.socket.resetAndDestroy(),
  // More than anybody may take: the connection is written to until somebody hangs up, or to the end.
  flood: async ({ mib }, response) => {
    response.writeHead(200, { etag: '"1"' });
    for (let sent = 0; sent < mib && !response.closed; sent += 1) {
      if (response.write(Buffer.alloc(MIB, 0x20))) continue;
      await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
    }
    response.end();
  },
  // The real answer, zipped, whatever the client said that it takes.
  gzip: (_rule, response, { store, request, body }) => pass(store, request, body, response, { zip: true }),
};

const pass = async (store, request, body, response, { zip = false } = {}) => {
  const { hostname, port } = new URL(store);
  const { method, url, headers } = request;
  // The Host header stays what was signed.
  const onward = http.request({ hostname, port, method, path: url, headers }, async (answered) => {
    const bytes = await readAll(answered);
    const head = { ...answered.headers };
    delete head['transfer-encoding'];
    const shown = zip && bytes.length > 0 ? gzipSync(bytes) : bytes;
    if (shown !== bytes) head['content-encoding'] = 'gzip';
    if (answered.statusCode !== 304) head['content-length'] = shown.length;
    response.writeHead(answered.statusCode, head).end(shown);
  });
  onward.on('error', () => response.destroy());
  onward.end(body);
};

const readAll = async (stream) => {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
};

const listen = (server) => new Promise((resolve) => {
  // A runtime that breaks off mid-request is what is being tested.
  server.on('clientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
});

const closed = (server) => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
};
