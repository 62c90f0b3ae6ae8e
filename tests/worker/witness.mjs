// Sees every record that a group writes, on its way to the store, and every answer that shows authority; then says whether
// more than one session can have had it.
import assert from 'node:assert/strict';
import { startProxy } from '../js/proxy.mjs';

const POLL_MS = 100;

/** A way to the store that keeps each record that the store has taken, in the store's order, with when it came. */
export const startWitness = async (target) => {
  const writes = [];
  const shown = [];
  const polls = [];
  const proxy = await startProxy(target, ({ method, headers, body, answer, atMs }) => {
    if (method !== 'PUT' || answer.statusCode !== 200) return;
    const { leaderID, session, term, sequence, leaseMs, parked, lastUpdated } = JSON.parse(body);
    const released = lastUpdated.startsWith('0001-');
    writes.push({ leaderID, session, term, sequence, leaseMs, parked, released, condition: headers['if-match'], etag: answer.headers.etag, atMs });
  });
  return {
    endpoint: proxy.endpoint,
    writes,
    /** Asks an isolate again and again whether a session in it has authority; gives a function that ends that. */
    watch: (worker) => {
      let going = true;
      const poll = async () => {
        while (going) {
          const sentMs = performance.now();
          const answer = await worker.ask().catch(() => undefined);
          const body = answer?.status === 200 ? await answer.json() : void (await answer?.text());
          if (body?.remainingMs > 0) shown.push({ session: body.session, term: body.term, sentMs, cameMs: performance.now() });
          await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
      };
      polls.push(poll());
      return () => (going = false);
    },
    shown,
    close: async () => {
      await Promise.all(polls);
      await proxy.close();
    },
  };
};

/** Holds what was seen against the rules; gives each session's first record, in order. */
export const assertOneAuthority = ({ writes, shown }) => {
  const firsts = [];
  for (const [index, write] of writes.entries()) {
    const before = writes[index - 1];
    if (before?.session !== write.session) firsts.push(write);
    if (before) assertSucceeds(before, write);
  }
  for (const answer of shown) {
    const newer = shown.find(({ term, cameMs }) => term > answer.term && cameMs < answer.sentMs);
    assert.equal(newer, undefined, `term ${answer.term} had authority after term ${newer?.term} had`);
  }
  return firsts;
};

const assertSucceeds = (before, write) => {
  const [one, other] = [before, write].map(({ leaderID, session, term }) => `${leaderID} ${session.slice(0, 6)} in term ${term}`);
  assert.equal(write.condition, before.etag, `${other} was not conditional on ${one}`);
  if (before.session === write.session) {
    assert.ok(write.term > before.term || (write.term === before.term && write.sequence > before.sequence), `${one} went back`);
    return;
  }
  assert.ok(write.term > before.term, `${other} follows ${one}`);
  const free = before.released || (before.parked && before.leaderID === write.leaderID);
  const waitedMs = write.atMs - before.atMs;
  assert.ok(free || waitedMs >= before.leaseMs, `${other} took over ${waitedMs.toFixed(0)} ms after ${one} wrote for ${before.leaseMs}`);
};
