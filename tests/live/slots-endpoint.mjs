// What the jobs call: it refuses a token lower than the highest it has seen, and tells of each call when it begins and ends.
import { setTimeout as sleep } from 'node:timers/promises';
import fastify from 'fastify';

const WHOLE = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const TEXT = { type: 'string', minLength: 1, maxLength: 100 };
const properties = { group: TEXT, slot: WHOLE, term: WHOLE, serverId: TEXT };
// Just what the Worker's job is documented to send.
const schema = { body: { type: 'object', additionalProperties: false, properties, required: Object.keys(properties) } };

/** Starts the endpoint of one group. `jobOf(slot, call)` says how the job of a slot answers at this call of it, as
 * `{ status, ms }`; `tell(entry)` hears of each begin and end, in the order of the endpoint's judgements. */
export async function startEndpoint({ group, jobOf, tell }) {
  const server = fastify({
    bodyLimit: 4096, forceCloseConnections: true, ajv: { customOptions: { removeAdditional: false, coerceTypes: false } },
  });
  const calls = new Map();
  const closing = new AbortController();
  let highest = 0;
  let run = 0;
  server.post('/run', { schema }, async ({ body, headers }, reply) => {
    const { slot, term: token, serverId: member } = body;
    if (body.group !== group || headers['edgelect-token'] !== String(token)) return reply.code(400).send();
    const whose = { run: (run += 1), slot, token, member };
    const accepted = token >= highest;
    highest = Math.max(highest, token);
    const call = calls.get(slot) ?? 0;
    if (accepted) calls.set(slot, call + 1);
    tell({ event: 'begin', ...whose, accepted, atMs: Date.now() });
    const { status, ms } = accepted ? jobOf(slot, call) : { status: 409, ms: 0 };
    await sleep(ms, undefined, { signal: closing.signal }).catch(() => {});
    tell({ event: 'end', ...whose, status, atMs: Date.now() });
    return reply.code(status).send();
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return {
    url: `${url}/run`,
    /** The highest token that came. */
    get highest() {
      return highest;
    },
    close() {
      closing.abort();
      return server.close();
    },
  };
}
