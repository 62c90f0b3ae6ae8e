// A proxy in front of the store, on loopback: counts requests and does what a test asks of it.
import http from 'node:http';

export const startProxy = async (target) => {
  const { hostname, port } = new URL(target);
  const seen = [];
  let answerWith = () => undefined;
  const server = http.createServer((request, response) => {
    const { method, url, headers } = request;
    seen.push({ method, url, headers });
    const own = answerWith({ method, url, headers });
    if (own === 'hang') return;
    if (own) {
      response.writeHead(own.status, own.headers ?? {}).end(own.body ?? '');
      return;
    }
    // The Host header stays what was signed.
    const onward = http.request({ hostname, port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    count: (method, key = '') => seen.filter((one) => one.method === method && one.url.includes(key)).length,
    seen,
    answerWith: (answer) => {
      answerWith = answer;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
};
