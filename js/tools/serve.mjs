// HTTP on loopback: a server on a port that the system picks, and requests that go on to another one.
import http from 'node:http';

/** Starts a listener of requests, or a server that has one; `close` ends its connections as well. */
export async function serve(listener) {
  const server = typeof listener === 'function' ? http.createServer(listener) : listener;
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { host, url: `http://${host}`, close };
}

export async function readAll(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Sends a request on as it came; the Host header stays what was signed. Gives `{ status, headers, bytes }`. */
export function forward(target, { method, url, headers }, body, agent) {
  const { hostname, port } = new URL(target);
  return new Promise((resolve, reject) => {
    const onward = http.request({ agent, hostname, port, method, path: url, headers }, async (answer) => {
      // The body is sent as one piece.
      const { 'transfer-encoding': chunked, ...kept } = answer.headers;
      const bytes = await readAll(answer).catch(reject);
      resolve({ status: answer.statusCode, headers: { ...kept, ...(chunked && { 'content-length': bytes.length }) }, bytes });
    });
    onward.once('error', reject);
    onward.end(body);
  });
}

/** Answers by what handles the web's own requests, such as an elector's `handleRequest`. */
export async function answerBy(handle, incoming, outgoing) {
  const response = await handle(new Request(`http://${incoming.headers.host}${incoming.url}`));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
}
