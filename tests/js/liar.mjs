// S3-like servers on loopback that lie, each in one way. No signature is looked at: they are asked by nobody else.
import { createHash } from 'node:crypto';
import { AwsClient } from 'aws4fetch';
import { serve } from './loopback.mjs';

const refusal = (status, code) =>
  ({ status, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>` });

const OF_A_STORE = { 'content-type': 'text/html', etag: '"d41d8cd98f00b204e9800998ecf8427e"', 'x-amz-request-id': '4442587FB7D0A2F9' };
/** What a manner says to everything, whatever is stored. */
const ALWAYS = { unwell: refusal(503, 'ServiceUnavailable'), portal: { status: 200, headers: OF_A_STORE, body: '<html>Log in</html>' } };
/** What it says to every PUT. */
const TO_PUTS = {
  forbids: refusal(403, 'AccessDenied'), between: refusal(409, 'ConditionalRequestConflict'), vanished: refusal(404, 'NoSuchKey'),
  elsewhere: refusal(404, 'NoSuchAccessPoint'), gateway: { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>no route</html>' },
  cache: { status: 304 }, terse: { status: 412 },
};

/** One object store, in memory: each object as `{ body, modified }`. `manner` may be:
 * - `honest`;
 * - `racy`: looks at the condition, waits for a moment, then writes;
 * - `forbids`: 403 to each PUT; `between`: 409 to each; `vanished`, `elsewhere`, `gateway`: 404 to each, of no key, of no access point, with
 *   a page; `cache`: 304 to each; `terse`: 412 to each, without a document; `lists`: 403 to a GET of what is missing, as without the right to list;
 * - `unwell`: 503 to everything; `silent`: no answer at all;
 * - `portal`: 200 and a page to everything, with the headers of a store; `nameless`: no ETag to a PUT;
 * - `echoes`: keeps a PUT over a version to itself, and answers 200 and that version. */
export const startLiar = async (manner) => {
  const objects = new Map();
  const [seen, signed] = [[], []];
  const server = await serve(async ({ method, url, headers }, response, body) => {
    seen.push({ method, url });
    signed.push(`${url} ${headers.authorization}`);
    if (manner === 'silent') return;
    const answer = await answered(objects, manner, { method, url, headers, body });
    response.writeHead(answer.status, answer.headers ?? {}).end(answer.body ?? '');
  });
  return { ...server, objects, seen, signed };
};

async function answered(objects, manner, { method, url, headers, body }) {
  if (ALWAYS[manner]) return ALWAYS[manner];
  const found = objects.get(url);
  const etag = found && etagOf(found.body);
  if (method === 'GET') {
    if (found) return { status: 200, headers: { etag, 'last-modified': found.modified.toUTCString() }, body: found.body };
    return manner === 'lists' ? refusal(403, 'AccessDenied') : refusal(404, 'NoSuchKey');
  }
  if (method === 'DELETE') {
    objects.delete(url);
    return { status: 204 };
  }
  if (TO_PUTS[manner]) return TO_PUTS[manner];
  if (headers['if-none-match'] === '*' ? found : headers['if-match'] !== etag) return refusal(412, 'PreconditionFailed');
  if (manner === 'echoes' && headers['if-match']) return { status: 200, headers: { etag } };
  // Longer than a busy machine takes between two requests that were sent at once.
  if (manner === 'racy') await new Promise((resolve) => setTimeout(resolve, 20));
  objects.set(url, { body, modified: new Date() });
  return { status: 200, headers: manner === 'nameless' ? {} : { etag: etagOf(body) } };
}

const etagOf = (body) => `"${createHash('md5').update(body).digest('hex')}"`;

/** A proxy in front of a real store that knows the credentials, drops the conditions and signs anew. */
export const startDropping = (target, credentials) => {
  const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1', retries: 0 });
  return serve(async ({ method, url }, response, body) => {
    const answer = await client.fetch(`${target}${url}`, { method, ...(method === 'PUT' ? { body } : {}) });
    const headers = Object.fromEntries(['etag', 'date', 'last-modified'].map((name) => [name, answer.headers.get(name)]).filter(([, value]) => value));
    response.writeHead(answer.status, headers).end(Buffer.from(await answer.arrayBuffer()));
  });
};
