// What every server of these tests is: on loopback, at a free port, and gone at once when it is closed.
import http from 'node:http';

/** Serves `answer(request, response, body)`; `{ endpoint, close }`. */
export const serve = async (answer) => {
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    await answer(request, response, Buffer.concat(chunks));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
};
