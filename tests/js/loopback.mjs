// What every server of these tests is: on loopback, at a free port, and gone at once when it is closed.
import { readAll, serve as listen } from '../../js/tools/serve.mjs';

/** Serves `answer(request, response, body)`; `{ endpoint, close }`. */
export const serve = async (answer) => {
  const { url: endpoint, close } = await listen(async (request, response) => answer(request, response, await readAll(request)));
  return { endpoint, close };
};
