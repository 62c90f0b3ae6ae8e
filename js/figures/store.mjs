// The store of a figure: a SeaweedFS of its own, and what counts the requests that really arrive there.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { Elector, S3Storage } from 'edgelect';
import { startSeaweed } from '../tools/seaweed.mjs';
import { forward, readAll, serve } from '../tools/serve.mjs';
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
  const agent = new http.Agent({ keepAlive: true });
  const seen = [];
  const { url: endpoint, close } = await serve(async (request, response) => {
    const { method, url } = request;
    const entry = { method, url, atMs: performance.now(), status: undefined, answeredMs: undefined, written: undefined };
    seen.push(entry);
    response.once('finish', () => (entry.answeredMs = performance.now()));
    try {
      const body = await readAll(request);
      const { status, headers, bytes } = await forward(store.endpoint, request, body, agent);
      entry.status = status;
      if (method === 'PUT' && status === 200) entry.written = String(body);
      response.writeHead(status, headers).end(bytes);
    } catch {
      response.destroy();
    }
  });
  return {
    endpoint,
    seen,
    close: () => {
      agent.destroy();
      return close();
    },
  };
}
