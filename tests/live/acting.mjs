// The work of every member, whatever runs it: acts on the fenced resource for as long as its authority lasts.

/** Between the look at the authority and the deed, as work that takes its time: a member that is stopped is most often
 * stopped here, and its deed arrives with an old token. */
const THINK_MS = 100;
const ANSWER_MS = 10_000;
/** How a `lead` ends when its elector is stopped. */
const STOPPED = ['EDGELECT_LOST', 'EDGELECT_STOPPED'];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Acts in each term until the elector is stopped. With `heedlessMs` it goes on for that long after a term has ended, as work
 * would that looks at no signal. */
export async function act(elector, { member, resource, heedlessMs = 0 }) {
  const post = async (where, body) => {
    const answer = await fetch(`${resource}${where}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: AbortSignal.timeout(ANSWER_MS),
    });
    await answer.body?.cancel();
    if (answer.status !== 200 && answer.status !== 409) throw new Error(`the resource answered ${answer.status}`);
  };

  // In this order: a stop between the two makes the look older, and the authority that it shows no longer than it was.
  const look = (term) => ({ lookMs: Date.now(), remainingMs: term.remaining() });

  const deed = async (whose, seen) => {
    await pause(THINK_MS);
    await post('/acts', { ...whose, ...seen });
  };

  const heedless = async (whose, term) => {
    for (const untilMs = Date.now() + heedlessMs; Date.now() < untilMs;) await deed(whose, look(term));
  };

  const work = async (term) => {
    const whose = { member, session: elector.status().session, token: term.token };
    try {
      while (!term.signal.aborted) {
        const seen = look(term);
        // Where clocks stand still the term may go on without authority until the next answer of the store.
        await (seen.remainingMs > 0 ? deed(whose, seen) : pause(THINK_MS));
      }
    } finally {
      // The release waits for this, so that whoever leads next begins after `endMs`.
      await post('/ends', { ...whose, endMs: Date.now() });
    }
    if (heedlessMs > 0) heedless(whose, term).catch(() => {});
    // So that the next term is led as well.
    throw term.signal.reason;
  };

  await elector.lead(work).catch((error) => {
    if (!STOPPED.includes(error.code)) throw error;
  });
}
