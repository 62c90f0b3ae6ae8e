// S3-like servers on loopback that lie, each in one way. No signature is looked at: they are asked by nobody else.
import { createHash } from 'node:crypto';
import http from 'node:http';

/** One object store in memory. `manner` may be:
 * - `honest`;
 * - `racy`: looks at the condition, waits for `windowMs`, then writes, as a server over a folder does without a lock;
 * - `forbids`: 403 to each PUT; `lists`: 403 to a GET of what is missing, as without the right to list;
 * - `unwell`: 503 to everything; `silent`: no answer at all;
 * - `portal`: 200 and a page to everything, with the headers of a store; `nameless`: no ETag to a PUT. */
export const startLiar = async (manner, { windowMs = 1 } = {}) => {
  const objects = new Map();
  const seen = [];
  const server = http.createServer(async (request, response) => {
    const { method, url, headers } = request;
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ method, url });
    if (manner === 'silent') return;
    const { status, ...rest } = await answered(objects, manner, windowMs, { method, url, headers, body: Buffer.concat(chunks) });
    response.writeHead(status, rest.headers ?? {}).end(rest.body ?? '');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    objects,
    seen,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
};

async function answered(objects, manner, windowMs, { method, url, headers, body }) {
  if (manner === 'unwell') return refusal(503, 'ServiceUnavailable');
  if (manner === 'portal') {
    const copied = { 'content-type': 'text/html', etag: '"d41d8cd98f00b204e9800998ecf8427e"', 'x-amz-request-id': '4442587FB7D0A2F9' };
    return { status: 200, headers: copied, body: '<html>Log in</html>' };
  }
  const found = objects.get(url);
  if (method === 'GET') {
    if (found) return { status: 200, headers: { etag: found.etag, 'last-modified': found.modified }, body: found.body };
    return manner === 'lists' ? refusal(403, 'AccessDenied') : refusal(404, 'NoSuchKey');
  }
  if (method === 'DELETE') {
    objects.delete(url);
    return { status: 204 };
  }
  if (manner === 'forbids') return refusal(403, 'AccessDenied');
  if (manner === 'between') return refusal(409, 'ConditionalRequestConflict');
  const known = headers['if-match'];
  if (headers['if-none-match'] === '*' ? found : known !== found?.etag) return refusal(412, 'PreconditionFailed');
  if (manner === 'racy') await new Promise((resolve) => setTimeout(resolve, windowMs));
  const etag = `"${createHash('md5').update(body).digest('hex')}"`;
  objects.set(url, { body, etag, modified: new Date().toUTCString() });
  return { status: 200, headers: manner === 'nameless' ? {} : { etag } };
}

const refusal = (status, code) =>
  ({ status, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>` });
