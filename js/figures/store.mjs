// The store of a figure: a SeaweedFS of its own, and what counts the requests that really arrive there.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { Elector, S3Storage } from 'edgelect';
import { startSeaweed } from '../tools/seaweed.mjs';
import { bucketOf } from '../tools/variables.mjs';

/** Runs work with a store and ends it. */
export async function withStore(work) {
  const store = await startSeaweed();
  try {
    return await work(store);
  } finally {
    await store.stop();
  }
}

/** The store as one member sees it, by its own or another endpoint. */
export const storageOf = (store, through) => new S3Storage(bucketOf(store, through));

/** A new group that waits for its first leader; gives the key of its lease. */
export async function newGroup(store, name) {
  const lockfilePath = `figures/${name}/${randomUUID()}.json`;
  await new Elector({ storage: storageOf(store), lockfilePath }).init();
  return lockfilePath;
}

/** A way to the store on a port of its own: notes each request when it came, how it was answered, and what it wrote. */
export async function startCounter(store) {
  const { hostname, port } = new URL(store.endpoint);
  const agent = new http.Agent({ keepAlive: true });
  const seen = [];
  const server = http.createServer((request, response) => {
    const { method, url, headers } = request;
    const entry = { method, url, atMs: performance.now(), status: undefined, answeredMs: undefined, written: undefined };
    seen.push(entry);
    const body = [];
    request.on('data', (chunk) => body.push(chunk));
    // The Host header stays what was signed.
    const onward = http.request({ agent, hostname, port, method, path: url, headers }, (answer) => {
      entry.status = answer.statusCode;
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      if (method === 'PUT' && answer.statusCode === 200) entry.written = Buffer.concat(body).toString();
    });
    response.once('finish', () => (entry.answeredMs = performance.now()));
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    seen,
    close: () => {
      agent.destroy();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
