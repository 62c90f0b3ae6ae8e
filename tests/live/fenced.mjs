// What the leaders of both runs change: it refuses a token lower than the highest it has seen, and tells of each attempt before it
// answers, so that the order of what is told is the order of its judgements.
import { setTimeout as sleep } from 'node:timers/promises';
import { readAll, serve } from '../../js/tools/serve.mjs';

/** Serves `{ path: answer }`; `answer(body, headers)` gives the status. */
const served = (answers) => serve(async (request, response) => {
  const body = JSON.parse(await readAll(request));
  response.writeHead(await answers[request.url](body, request.headers)).end();
});

class Tokens {
  highest = 0;

  accepts(token) {
    this.highest = Math.max(this.highest, token);
    return token === this.highest;
  }
}

/** Starts the resource; `tell` writes down each attempt and each end, of which it hears what is named here and no more, and `onAct`
 * hears of each attempt. */
export async function startResource({ tell, onAct }) {
  const tokens = new Tokens();
  const onCall = ({ member, session, token, lookMs, remainingMs }) => {
    const accepted = tokens.accepts(token);
    const act = { event: 'act', accepted, member, session, token, lookMs, remainingMs, atMs: Date.now() };
    tell(act);
    onAct(act);
    return accepted ? 200 : 409;
  };
  const onEnd = ({ member, session, token, endMs }) => {
    tell({ event: 'end', member, session, token, endMs });
    return 200;
  };
  return served({ '/acts': onCall, '/ends': onEnd });
}

/** Starts what the jobs of one group call. `jobOf(slot, call)` says how the job of a slot answers at this call of it, as
 * `{ status, ms }`; `tell(entry)` hears of each begin and end. */
export async function startEndpoint({ group, jobOf, tell }) {
  const calls = new Map();
  const tokens = new Tokens();
  let run = 0;
  const onJob = async ({ group: named, slot, term: token, serverId: member }, headers) => {
    if (named !== group || headers['edgelect-token'] !== String(token)) return 400;
    const whose = { run: (run += 1), slot, token, member };
    const accepted = tokens.accepts(token);
    const call = calls.get(slot) ?? 0;
    if (accepted) calls.set(slot, call + 1);
    tell({ event: 'begin', ...whose, accepted, atMs: Date.now() });
    const { status, ms } = accepted ? jobOf(slot, call) : { status: 409, ms: 0 };
    await sleep(ms, undefined, { ref: false });
    tell({ event: 'end', ...whose, status, atMs: Date.now() });
    return status;
  };
  const { url, close } = await served({ '/run': onJob });
  return { url: `${url}/run`, tokens, close };
}
