// S3-like servers on loopback that lie, each in one way. No signature is looked at: they are asked by nobody else.
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { serve } from './loopback.mjs';

const refusal = (status, code) =>
  ({ status, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>` });

/** What a manner says to everything, whatever is stored. */
const ALWAYS = {
  unwell: refusal(503, 'ServiceUnavailable'),
  portal: {
    status: 200,
    headers: { 'content-type': 'text/html', etag: '"d41d8cd98f00b204e9800998ecf8427e"', 'x-amz-request-id': '4442587FB7D0A2F9' },
    body: '<html>Log in</html>',
  },
};
/** What it says to every PUT. */
const TO_PUTS = { forbids: refusal(403, 'AccessDenied'), between: refusal(409, 'ConditionalRequestConflict') };

/** Objects in memory: each as `{ body, modified }`. */
const inMemory = () => {
  const objects = new Map();
  return {
    objects,
    read: async (url) => objects.get(url),
    write: async (url, body) => void objects.set(url, { body, modified: new Date() }),
    remove: async (url) => objects.delete(url),
    close: async () => {},
  };
};

/** Objects in a folder: between a look at one and its writing lies what the file system takes. */
const inFolder = async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'edgelect-racy-'));
  const fileOf = (url) => path.join(folder, Buffer.from(url).toString('hex').slice(-200));
  return {
    read: (url) => fs.readFile(fileOf(url)).then(async (body) => ({ body, modified: (await fs.stat(fileOf(url))).mtime }), () => undefined),
    write: async (url, body) => {
      const partial = `${fileOf(url)}.${Math.random().toString(16).slice(2)}`;
      await fs.writeFile(partial, body);
      await fs.rename(partial, fileOf(url));
    },
    remove: (url) => fs.rm(fileOf(url), { force: true }),
    close: () => fs.rm(folder, { recursive: true, force: true }),
  };
};

/** One object store. `manner` may be:
 * - `honest`;
 * - `racy`: looks at the condition, waits for `windowMs`, then writes; `folder`: the same over a folder, without a lock;
 * - `forbids`: 403 to each PUT; `between`: 409 to each; `lists`: 403 to a GET of what is missing, as without the right to list;
 * - `unwell`: 503 to everything; `silent`: no answer at all;
 * - `portal`: 200 and a page to everything, with the headers of a store; `nameless`: no ETag to a PUT. */
export const startLiar = async (manner, { windowMs = 1 } = {}) => {
  const store = manner === 'folder' ? await inFolder() : inMemory();
  const [seen, signed] = [[], []];
  const server = await serve(async ({ method, url, headers }, response, body) => {
    seen.push({ method, url });
    signed.push(`${url} ${headers.authorization}`);
    if (manner === 'silent') return;
    const answer = await answered(store, manner, windowMs, { method, url, headers, body });
    response.writeHead(answer.status, answer.headers ?? {}).end(answer.body ?? '');
  });
  const close = async () => {
    await server.close();
    await store.close();
  };
  return { ...server, objects: store.objects, seen, signed, close };
};

async function answered(store, manner, windowMs, { method, url, headers, body }) {
  if (ALWAYS[manner]) return ALWAYS[manner];
  const found = await store.read(url);
  const etag = found && etagOf(found.body);
  if (method === 'GET') {
    if (found) return { status: 200, headers: { etag, 'last-modified': found.modified.toUTCString() }, body: found.body };
    return manner === 'lists' ? refusal(403, 'AccessDenied') : refusal(404, 'NoSuchKey');
  }
  if (method === 'DELETE') {
    await store.remove(url);
    return { status: 204 };
  }
  if (TO_PUTS[manner]) return TO_PUTS[manner];
  if (headers['if-none-match'] === '*' ? found : headers['if-match'] !== etag) return refusal(412, 'PreconditionFailed');
  if (manner === 'racy') await new Promise((resolve) => setTimeout(resolve, windowMs));
  await store.write(url, body);
  return { status: 200, headers: manner === 'nameless' ? {} : { etag: etagOf(body) } };
}

const etagOf = (body) => `"${createHash('md5').update(body).digest('hex')}"`;
