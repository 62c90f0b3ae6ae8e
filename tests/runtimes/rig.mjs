// A rig of faulty servers on loopback for the suite, which can't start servers in every runtime: the suite opens lanes
// over HTTP, says how each one answers, and asks what came in.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { gzipSync } from 'node:zlib';
import { forward, readAll, serve } from '../../js/tools/serve.mjs';

const PEM = fs.readFileSync(new URL('self-signed.pem', import.meta.url));
const HTML = '<!doctype html><html><head><title>Welcome</title></head><body>It works!</body></html>';
const MIB = 1 << 20;
const FLOOD_MIB = 64;

/** Starts the rig in front of a real store. `url` is where the suite opens its lanes. */
export const startRig = async (store) => {
  const lanes = new Map();
  const { url, close } = await serve(async (request, response) => {
    try {
      const answer = await obey(lanes, store, request);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } catch (error) {
      response.writeHead(500).end(String(error.stack));
    }
  });
  return {
    url,
    close: async () => {
      await Promise.all([...lanes.values()].map((lane) => lane.close()));
      await close();
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
  if (request.method === 'PUT') lane.rules = JSON.parse(text).rules;
  return { seen: lane.seen };
};

/** One server. Its rules are looked through in order for each request; one that has none goes to the store. */
const openLane = async (store, { kind = 'http', rules = [] }) => {
  const lane = { rules, seen: [] };
  const onRequest = (request, response) => answer(lane, store, request, response);
  const server = kind === 'https' ? https.createServer({ key: PEM, cert: PEM }, onRequest) : http.createServer(onRequest);
  // A runtime that breaks off mid-request is what is being tested.
  server.on('clientError', (_error, socket) => socket.destroy());
  const { host, close } = await serve(server);
  Object.assign(lane, { id: host.split(':')[1], endpoint: `${kind === 'https' ? 'https' : 'http'}://${host}`, close });
  if (kind === 'closed') await close();
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
  const rule = lane.rules.find((one) => (one.method ?? method) === method && one.times !== 0);
  if (rule?.times) rule.times -= 1;
  const body = await readAll(request).catch(() => Buffer.alloc(0));
  seen.bytes = body.length;
  if (!rule) return pass(store, request, body, response);
  await faults[rule.fault ?? 'answer'](rule, response, { store, request, body });
};

const faults = {
  answer: ({ status, headers }, response) => response.writeHead(status, headers).end(),
  web: (_rule, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(HTML),
  hang: () => {},
  // Headers at once, a body that never ends.
  hangBody: (_rule, response) => response.writeHead(200, { etag: '"1"' }).write('{"leaderID":'),
  reset: (_rule, response) => response.socket.resetAndDestroy(),
  // More than anybody may take: the connection is written to until somebody hangs up, or to the end.
  flood: async (_rule, response) => {
    response.writeHead(200, { etag: '"1"' });
    for (let sent = 0; sent < FLOOD_MIB && !response.closed; sent += 1) {
      if (response.write(Buffer.alloc(MIB, 0x20))) continue;
      await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
    }
    response.end();
  },
  // The real answer, zipped, whatever the client said that it takes.
  gzip: (_rule, response, { store, request, body }) => pass(store, request, body, response, { zip: true }),
};

const pass = async (store, request, body, response, { zip = false } = {}) => {
  try {
    const { status, headers, bytes } = await forward(store, request, body);
    const zipped = zip && bytes.length > 0 && gzipSync(bytes);
    const changed = zipped ? { ...headers, 'content-encoding': 'gzip', 'content-length': zipped.length } : headers;
    response.writeHead(status, changed).end(zipped || bytes);
  } catch {
    response.destroy();
  }
};
