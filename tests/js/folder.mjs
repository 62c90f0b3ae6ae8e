import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

/** An S3-like server over a folder that looks at the object, then writes it, without a lock between: its window is what the
 * file system takes. */
export const startFolder = async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'edgelect-racy-'));
  const seen = [];
  const server = http.createServer(async (request, response) => {
    const { method, url, headers } = request;
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ method, url });
    const file = path.join(folder, Buffer.from(url).toString('hex').slice(-200));
    const end = (status, more = {}, body = '') => response.writeHead(status, more).end(body);
    const found = await fs.readFile(file).catch(() => undefined);
    const etagOf = (bytes) => bytes && `"${createHash('md5').update(bytes).digest('hex')}"`;
    const etag = etagOf(found);
    if (method === 'GET') return found ? end(200, { etag, 'last-modified': (await fs.stat(file)).mtime.toUTCString() }, found) : end(404, {}, '<Error><Code>NoSuchKey</Code></Error>');
    if (method === 'DELETE') return fs.rm(file, { force: true }).then(() => end(204));
    const refused = headers['if-none-match'] === '*' ? found : headers['if-match'] !== etag;
    if (refused) return end(412, {}, '<Error><Code>PreconditionFailed</Code></Error>');
    const body = Buffer.concat(chunks);
    const partial = `${file}.${Math.random().toString(16).slice(2)}`;
    await fs.writeFile(partial, body);
    await fs.rename(partial, file);
    return end(200, { etag: etagOf(body) });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await fs.rm(folder, { recursive: true, force: true });
    },
  };
};
