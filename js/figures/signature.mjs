// How much CPU one signed request takes, up to the moment at which it could be sent, by several signers in one run.
import { createHash, createHmac } from 'node:crypto';
import fs from 'node:fs';
import { AwsClient } from 'aws4fetch';
import { build } from '../tools/build.mjs';
import { inRoot } from '../tools/paths.mjs';
import { PlainError, step } from '../tools/run.mjs';
import { line, median } from './figure.mjs';

const ENDPOINT = 'https://s3.us-east-1.amazonaws.com';
const BUCKET = 'jobs';
const KEY = 'leader/report.json';
// AWS's own example pair, which opens nothing.
const ACCESS_KEY_ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const ETAG = '"9b2cf535f27731c974343645a3985328"';
const BODY_BYTES = 400;
const DAY_MS = 86_400_000;
const BATCH = 200;
const BATCHES = { full: 60, quick: 12 };
const FASTER_THAN_AWS4FETCH = 10;
const MOST_TIMES_THE_HASHES = 2;
// The ratio itself hardly depends on the load, but a garbage collection or a busy neighbour may hit one side only.
const QUICK_FASTER_THAN_AWS4FETCH = 5;

/** Measures a read and a write; in batches that take turns, so that a change of the machine's speed hits all alike. */
export async function measure({ quick }) {
  await build(['figures']);
  const signers = await makeSigners();
  await agree(signers);
  const lines = [];
  for (const method of ['GET', 'PUT']) {
    const took = await step(`Signing ${method}s`, () => compare(signers, method, quick ? BATCHES.quick : BATCHES.full));
    lines.push(...report(method, took, quick));
  }
  return {
    title: `microseconds of CPU of one signed request, on Node ${process.versions.node}`,
    lines,
    notes: [
      `Median of ${quick ? BATCHES.quick : BATCHES.full} batches of ${BATCH}, the signers taking turns; a PUT carries ${BODY_BYTES} bytes.`,
      'edgelect: its npm build with one function more, called from JavaScript, arguments and result carried across.',
      'Hashes alone: five HMACs and the SHA-256 of body and canonical request, by the same crates in the same wasm; once more by node:crypto.',
      'aws4fetch keeps its key of the day and leaves the body unhashed (UNSIGNED-PAYLOAD), as it does by default.',
    ],
  };
}

/** Each signs one request of a method at a time, in milliseconds since the epoch, and gives the header. */
async function makeSigners() {
  const { FiguresSigner, figuresHashes, initSync } = await import('../../build/figures/wasm/edgelect.js');
  initSync({ module: fs.readFileSync(inRoot('build/figures/wasm/edgelect_bg.wasm')) });
  const edgelect = new FiguresSigner(ENDPOINT, BUCKET, KEY, ACCESS_KEY_ID, SECRET);
  const aws = new AwsClient({ accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET, service: 's3', region: 'us-east-1', retries: 0 });
  const body = Buffer.from(JSON.stringify({ leaderID: 'server-001', pad: '' }).padEnd(BODY_BYTES, ' '));
  const none = Buffer.alloc(0);
  const bodyOf = (method) => (method === 'PUT' ? body : none);
  let calls = 0;
  return {
    edgelect: (method, atMs) => edgelect.sign(bodyOf(method), ETAG, atMs),
    // Another day than the last call's: the key is made anew each time.
    edgelectNewKey: (method, atMs) => edgelect.sign(bodyOf(method), ETAG, atMs + DAY_MS * (calls++ % 2)),
    aws4fetch: async (method, atMs, more = {}) => {
      const condition = method === 'PUT' ? 'if-match' : 'if-none-match';
      const datetime = stampOf(atMs);
      const request = await aws.sign(`${ENDPOINT}/${BUCKET}/${KEY}`, {
        method, headers: { [condition]: ETAG, ...more }, body: method === 'PUT' ? body : undefined, aws: { datetime },
      });
      return request.headers.get('authorization');
    },
    hashes: (method, atMs) => figuresHashes(bodyOf(method), CANONICAL[method], FIRST_KEY, Buffer.from(scopeOf(stampOf(atMs)))),
    nodeCrypto: (method, atMs) => byNodeCrypto(method, bodyOf(method), atMs),
    bodyOf,
  };
}

const stampOf = (atMs) => new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, '');
const sha256 = (data) => createHash('sha256').update(data).digest('hex');

const scopeOf = (stamp) => `${stamp.slice(0, 8)}/us-east-1/s3/aws4_request`;
const FIRST_KEY = Buffer.from(`AWS4${SECRET}`);

function canonicalOf(method, bodyHash, stamp) {
  const condition = method === 'PUT' ? 'if-match' : 'if-none-match';
  return `${method}\n/${BUCKET}/${KEY}\n\nhost:s3.us-east-1.amazonaws.com\n${condition}:${ETAG}\n`
    + `x-amz-content-sha256:${bodyHash}\nx-amz-date:${stamp}\n\nhost;${condition};x-amz-content-sha256;x-amz-date\n${bodyHash}`;
}

// As long as a real one; which bytes it has makes no difference to a hash.
const CANONICAL = Object.fromEntries(['GET', 'PUT'].map((method) => [method, Buffer.from(canonicalOf(method, sha256(''), stampOf(0)))]));

function byNodeCrypto(method, body, atMs) {
  const stamp = stampOf(atMs);
  const scope = scopeOf(stamp);
  const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
  const key = scope.split('/').reduce(hmac, FIRST_KEY);
  const canonicalHash = sha256(canonicalOf(method, sha256(body), stamp));
  return `Signature=${hmac(key, `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${canonicalHash}`).toString('hex')}`;
}

// What is measured must be the same work: all give the same signature for the same request.
async function agree({ edgelect, aws4fetch, nodeCrypto, bodyOf }) {
  const signatureOf = (header) => /Signature=([0-9a-f]{64})/.exec(header)?.[1];
  const atMs = Date.now();
  for (const method of ['GET', 'PUT']) {
    const expected = signatureOf(await aws4fetch(method, atMs, { 'x-amz-content-sha256': sha256(bodyOf(method)) }));
    for (const [name, sign] of Object.entries({ edgelect, nodeCrypto })) {
      const found = signatureOf(sign(method, atMs));
      if (found === undefined || found !== expected) throw new PlainError(`${name} and aws4fetch sign a ${method} differently`);
    }
  }
}

async function compare({ bodyOf: _, ...signers }, method, batches) {
  const took = Object.fromEntries(Object.keys(signers).map((name) => [name, []]));
  // The first batches only warm the compilers up.
  for (let batch = -5; batch < batches; batch += 1) {
    for (const [name, sign] of Object.entries(signers)) {
      const us = await microseconds(sign, method);
      if (batch >= 0) took[name].push(us);
    }
  }
  return Object.fromEntries(Object.entries(took).map(([name, all]) => [name, median(all)]));
}

async function microseconds(sign, method) {
  const atMs = Date.now();
  // A promise is waited for only where there is one: the wait itself takes longer than a hash.
  const waits = sign(method, atMs) instanceof Promise;
  // CPU, not time: others on this machine cost a slow signer more than a quick one. All threads count.
  const before = process.cpuUsage();
  for (let call = 0; call < BATCH; call += 1) {
    if (waits) await sign(method, atMs);
    else sign(method, atMs);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / BATCH;
}

function report(method, { edgelect, edgelectNewKey, aws4fetch, hashes, nodeCrypto }, quick) {
  const us = (value) => `${value.toFixed(1)} us`;
  const least = quick ? QUICK_FASTER_THAN_AWS4FETCH : FASTER_THAN_AWS4FETCH;
  const ratio = aws4fetch / edgelect;
  const times = edgelectNewKey / hashes;
  return [
    line({
      what: `signed ${method}, times faster than aws4fetch`, value: ratio, shown: `${ratio.toFixed(1)}x (${us(edgelect)})`, least,
      limit: `at least ${least}x`, against: `aws4fetch ${us(aws4fetch)}`, readme: method === 'PUT',
    }),
    line({
      what: `signed ${method} with a new key, beside its hashes alone`, value: times, shown: `${times.toFixed(2)}x (${us(edgelectNewKey)})`,
      most: quick ? undefined : MOST_TIMES_THE_HASHES, limit: quick ? '' : `at most ${MOST_TIMES_THE_HASHES}x`,
      against: `five HMACs and SHA-256 ${us(hashes)}, by node:crypto ${us(nodeCrypto)}`, readme: method === 'PUT',
    }),
  ];
}
