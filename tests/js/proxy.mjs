// A proxy in front of the store, on loopback: notes requests and does what a test asks of it.
import { forward } from '../../js/tools/serve.mjs';
import { serve } from './loopback.mjs';

/** Passes requests on to `target`, but for those that `answerWith` has an answer of its own for. */
export const startProxy = async (target) => {
  const seen = [];
  let answerWith = () => undefined;
  const server = await serve(async (request, response, body) => {
    const { method, url, headers } = request;
    const one = { method, url, headers, atMs: performance.now(), passed: false };
    seen.push(one);
    const own = await answerWith(one);
    if (own === 'hang') return;
    one.passed = !own;
    const answer = own ?? (await forward(target, request, body).catch(() => undefined));
    if (answer) response.writeHead(answer.status, answer.headers ?? {}).end(answer.bytes ?? answer.body);
    else response.destroy();
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
