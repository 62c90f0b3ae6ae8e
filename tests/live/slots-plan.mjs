// What a seed means for a run of slots: who is triggered when, what fails, who dies, how each job answers.
import { chance, shuffled } from './plan.mjs';
import { REQUEST_FAULTS } from './proxy.mjs';

export const MEMBERS = ['worker-1', 'worker-2', 'worker-3', 'node-1', 'node-2'];
/** What is done to whom at which moment of its slot: the claim has landed and its sender does not know; the job is about to
 * be called; it is called; the closing write has landed and its sender does not know. */
export const FATES = [
  { kind: 'kill', at: 'claim' }, { kind: 'kill', at: 'begin' }, { kind: 'kill', at: 'close' },
  { kind: 'stop', at: 'claim' }, { kind: 'stop', at: 'look' }, { kind: 'stop', at: 'begin' }, { kind: 'stop', at: 'close' },
];
const WRITES_FAIL = 2;
/** Slots whose job never ends well, one in so many. */
const CURSED_EACH = 60;

/** The triggers of one slot, in the order in which they leave: `{ haste, patienceMs, triggers: [{ member, late, afterMs }] }`;
 * `late` is in slots. */
export function triggersOf(seed, slot) {
  const draw = chance(seed, `triggers ${slot}`);
  const chosen = MEMBERS.filter(() => draw() < 0.4);
  const members = chosen.length > 0 ? chosen : [MEMBERS[Math.floor(draw() * MEMBERS.length)]];
  const triggers = members.flatMap((member) => {
    const copies = draw() < 0.2 ? 2 : 1;
    return Array.from({ length: copies }, () => ({ member, late: draw() < 0.25 ? 1 + Math.floor(draw() * 4) : 0, afterMs: draw() * 60 }));
  });
  const luck = draw();
  // When the next slot is due: once this one is done, once it has begun, or at once.
  const haste = luck < 0.6 ? 'done' : luck < 0.85 ? 'begun' : 'now';
  return { haste, patienceMs: 300 + draw() * 900, triggers: shuffled(triggers, draw) };
}

/** How the job of a slot answers when it is called for the n-th time: `{ status, ms }`. Late is later than anybody waits. */
export function jobOf(seed, slot, call, { leaseMs, timeoutMs }) {
  const cursed = chance(seed, `curse ${slot}`)() < 1 / CURSED_EACH;
  const draw = chance(seed, `job ${slot} ${call}`);
  const luck = draw();
  if (cursed || luck < 0.06) return { status: 500, ms: draw() * 30 };
  if (luck < 0.066) return { status: 200, ms: timeoutMs + 300 };
  if (luck < 0.074) return { status: 200, ms: (1.1 + 0.2 * draw()) * leaseMs };
  return { status: 200, ms: luck < 0.3 ? 40 + draw() * 120 : draw() * 20 };
}

/** What happens to members, without an end: `{ kind, at, slots, share }`, the next one so many slots after the one before. */
export function* fates(seed) {
  const draw = chance(seed, 'fates');
  for (;;) {
    for (const fate of shuffled(FATES, draw)) yield { ...fate, slots: 7 + Math.floor(draw() * 8), share: draw() };
  }
}

/** The weather of the network, without an end: `{ kind, slots, share, ms }`: calm; each request failing with this chance; nobody
 * reaching the store for so long. */
export function* weather(seed) {
  const draw = chance(seed, 'weather');
  for (;;) {
    for (const kind of ['bad', 'bad', 'out']) {
      yield { kind: 'calm', slots: 5 + Math.floor(draw() * 8), share: 0, ms: 0 };
      yield { kind, slots: kind === 'out' ? 0 : 6 + Math.floor(draw() * 8), share: 0.15 + 0.2 * draw(), ms: 500 + draw() * 1_500 };
    }
  }
}

/** Which fault each request of a lane meets, for a fault that is drawn for each; a write meets one more often. */
export function* requestFaults(seed, lane) {
  const draw = chance(seed, `requests of ${lane}`);
  for (;;) {
    const fails = draw();
    const [which] = shuffled(Object.keys(REQUEST_FAULTS), draw);
    yield (method, share) => (fails < (method === 'PUT' ? WRITES_FAIL * share : share) ? which : undefined);
  }
}
