// A proxy in front of the store, on loopback: counts requests and does what a test asks of it.
import http from 'node:http';
import { serve } from './loopback.mjs';

/** Passes requests on to `target`; `onPassed` is given each that was, with its body, its answer and when it came. */
export const startProxy = async (target, onPassed = () => {}) => {
  const { hostname, port } = new URL(target);
  const seen = [];
  let answerWith = () => undefined;
  const server = await serve(async ({ method, url, headers }, response, body) => {
    const atMs = performance.now();
    seen.push({ method, url, headers });
    const own = await answerWith({ method, url, headers });
    if (own === 'hang') return;
    if (own) {
      response.writeHead(own.status, own.headers ?? {}).end(own.body ?? '');
      return;
    }
    // The Host header stays what was signed.
    const onward = http.request({ hostname, port, method, path: url, headers }, (answer) => {
      onPassed({ method, headers, body, answer, atMs });
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    onward.end(body);
  });
  return {
    ...server,
    count: (method, key = '') => seen.filter((one) => one.method === method && one.url.includes(key)).length,
    seen,
    answerWith: (answer) => {
      answerWith = answer;
    },
  };
};
