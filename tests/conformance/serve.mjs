// The SQLite storage as an S3 endpoint, so that the native list and its histories reach it; and Wrangler's local R2 with
// an S3 endpoint of its own. Node 24 only. Prints one line of JSON when it answers; ends with its standard input.
import { createServer } from 'node:http';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { SqliteStorage } from '../../examples/sqlite-storage/sqlite-storage.mjs';

const BUCKET = 'edgelect';

const miniflareOf = (s3Credentials) => new Miniflare(convertV4MiniflareOptions({
  modules: true, script: 'export default {}', compatibilityDate: '2026-11-01', host: '127.0.0.1', port: 0,
  r2Buckets: { EDGELECT_R2: { id: BUCKET, s3Credentials } },
}));

const refusal = (status, code) => ({ status, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?><Error><Code>${code}</Code></Error>` });

const [file, accessKeyId, secretAccessKey] = process.argv.slice(2);
const storage = new SqliteStorage(file);

const read = async (key, known) => {
  const found = await storage.get(key);
  if (found === null) return refusal(404, 'NoSuchKey');
  const headers = { etag: found.etag };
  if (found.date) headers.date = new Date(found.date).toUTCString();
  if (found.etag === known) return { status: 304, headers };
  headers['last-modified'] = new Date(found.lastModified).toUTCString();
  return { status: 200, headers, body: found.body };
};

const write = async (key, body, { 'if-match': etag, 'if-none-match': none }) => {
  if ((etag === undefined) === (none === undefined)) return refusal(400, 'InvalidArgument');
  const written = await storage.putIfMatch(key, body, etag ?? null);
  return written === null ? refusal(412, 'PreconditionFailed') : { status: 200, headers: { etag: written.etag } };
};

const answer = async (request) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const [, , ...key] = new URL(request.url, 'http://localhost').pathname.split('/');
  const body = new Uint8Array(Buffer.concat(chunks));
  return request.method === 'GET' ? read(key.join('/'), request.headers['if-none-match'])
    : write(key.join('/'), body, request.headers);
};

const listen = () => new Promise((resolve) => {
  const server = createServer((request, response) => {
    // Only a storage's own time is told on.
    response.sendDate = false;
    answer(request).catch((error) => refusal(500, `InternalError-${error.code ?? error.name}`)).then(({ status, headers, body }) => {
      response.writeHead(status, headers).end(body);
    });
  });
  // A connection that the server ends just when a write is sent on it would make an unknown outcome.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
});

const told = {};
let miniflare;
// The second process is there for SQLite alone.
if (accessKeyId) {
  miniflare = miniflareOf({ accessKeyId, secretAccessKey });
  const url = await miniflare.ready;
  told.r2 = `${url.origin}/cdn-cgi/local/r2/s3`;
}
told.storages = await listen();
console.log(JSON.stringify(told));
process.stdin.resume().once('end', async () => {
  await miniflare?.dispose();
  storage.close();
  process.exit();
});
