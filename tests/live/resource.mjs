// What the leader changes: it refuses a token lower than the highest it has seen, and writes each attempt down before it
// answers, so that the order of the lines is the order of its judgements.
import fs from 'node:fs';
import fastify from 'fastify';

const NAME = { type: 'string', pattern: '^[\\w-]{1,64}$' };
const WHOLE = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
// What is not named here never comes into the log.
const bodyOf = (properties) => ({
  body: { type: 'object', additionalProperties: false, properties, required: Object.keys(properties) },
});
const WHOSE = { member: NAME, session: NAME, token: WHOLE };
const ACT = bodyOf({ ...WHOSE, lookMs: WHOLE, remainingMs: WHOLE });
const END = bodyOf({ ...WHOSE, endMs: WHOLE });

/** Starts the resource with a new log in `file`; `onAct` hears of each attempt. */
export async function startResource({ file, onAct = () => {} }) {
  const log = fs.openSync(file, 'w');
  const write = (entry) => fs.writeSync(log, `${JSON.stringify(entry)}\n`);
  const server = fastify({ bodyLimit: 4096, forceCloseConnections: true });
  let highest = 0;
  server.post('/acts', { schema: ACT }, async ({ body }, reply) => {
    const accepted = body.token >= highest;
    highest = Math.max(highest, body.token);
    const act = { event: 'act', accepted, ...body, atMs: Date.now() };
    write(act);
    onAct(act);
    return reply.code(accepted ? 200 : 409).send({ accepted, highest });
  });
  server.post('/ends', { schema: END }, async ({ body }) => {
    write({ event: 'end', ...body });
    return {};
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    /** Lets a line about the run itself stand among the acts. */
    note: (about) => write({ event: 'fault', atMs: Date.now(), ...about }),
    async close() {
      await server.close();
      fs.closeSync(log);
    },
  };
}
