// Judges one run of slots: a pure function from what was written down to what was broken.
//
// Three accounts of the same slots are held against one another: the records, as the proxy saw the store take them; the jobs,
// as their endpoint saw them begin and end; and what the members reported of each trigger. The records are put in order by
// their conditions, each of which names the version before, so that no clock decides what came first. Slots are counted here:
// 0 was done before the run, `last` is the last one that was due. The schedule makes up for every missed slot, so that under
// either policy none may be left out.

/**
 * The rules:
 * - `chain`: each record that the store took replaced the newest one.
 * - `growth`: the slot of a record never falls, nor do the failures of a slot, and one term has one slot.
 * - `token`: each claim has a higher token than all before; among the accepted runs tokens grow.
 * - `leftOut`: no slot is passed over, and none up to the last is unclaimed at the end.
 * - `claimed`: a slot is claimed by one session; at least once also by others, while it is not done and has failures left.
 * - `overtaken` (at least once): no slot is claimed while the one before is neither done nor given up. A session whose job ended
 *   well knows that it is done, also where its closing write failed: it goes on, and its next claim says so.
 * - `twice` (at most once): no slot begins twice; under either policy no token does.
 * - `unclaimed`: no job begins but for a claim that the store took.
 * - `done`: no record says done of a job that the endpoint did not see end well.
 * - `lost` (at least once): each slot is run to its end, or its failures are spent.
 * - `fence`: the endpoint refuses exactly the tokens that are lower than one that it saw.
 * - `report`: what a member says of a trigger does not contradict the records and the jobs.
 * - `silent`: each trigger of a member that lives is reported.
 *
 * @returns `{ violations: [{ rule, slot, sentence }], counts }`
 */
export function checkSlots(entries, { policy, attempts, last }) {
  const of = (event) => entries.filter((entry) => entry.event === event);
  const jobs = jobsOf(of('begin'), of('end'));
  const { chain, violations } = chainOf(of('write'));
  const claims = chain.slice(1).filter((write, index) => write.term !== chain[index].term);
  const all = { chain, claims, jobs, policy, attempts, last, claimOf: new Map(claims.map((claim) => [claim.term, claim])) };
  violations.push(
    ...chain.slice(1).flatMap((write, index) => succeeded(chain[index], write, all)), ...tokens(all), ...claimed(all), ...begun(all),
    ...fenced(of('begin')), ...ended(all), ...of('report').flatMap((report) => reported(report, all)),
    ...silent(of('trigger'), of('report'), of('fault')),
  );
  return { violations, counts: counted(entries, all) };
}

const broken = (rule, slot, sentence) => ({ rule, slot, sentence });
const isDone = (jobs, { slot, term }) => jobs.some((job) => job.token === term && job.slot === slot && job.accepted && job.status === 200);

/** Whether the session that claimed next had done the slot before itself. */
const isOwnDone = (jobs, before, next) => next !== undefined && next.session === before.session && isDone(jobs, before);

/** The records in the order in which they replaced one another; the first one is the seed's. */
function chainOf(writes) {
  const violations = [];
  const next = new Map();
  for (const write of writes.slice(1)) {
    const rival = next.get(write.condition);
    if (rival === undefined) next.set(write.condition, write);
    else violations.push(broken('chain', write.slot, `${who(write)} and ${who(rival)} both replaced one record`));
  }
  const chain = writes.slice(0, 1);
  for (let write = next.get(chain[0].etag); write !== undefined; write = next.get(write.etag)) {
    next.delete(write.condition);
    chain.push(write);
  }
  for (const write of next.values()) violations.push(broken('chain', write.slot, `${who(write)} replaced a record that nobody saw`));
  return { chain, violations };
}

const who = ({ member, session, term }) => `${member} (session ${session}, term ${term})`;

/** Jobs with how they ended, in the order in which they began. */
function jobsOf(begins, ends) {
  return begins.map((begin) => ({ ...begin, status: ends.find(({ run }) => run === begin.run)?.status }));
}

/** What one record may be after another. */
function succeeded(before, write, { policy, attempts, jobs }) {
  const { slot } = write;
  if (!Number.isSafeInteger(slot)) return [broken('growth', before.slot, `${who(write)} wrote a record without a slot`)];
  if (slot < before.slot) return [broken('growth', slot, `${who(write)} wrote slot ${slot} over ${before.slot}`)];
  if (slot === before.slot && (write.failures ?? 0) < (before.failures ?? 0)) {
    return [broken('growth', slot, `${who(write)} forgot failures of slot ${slot}: ${before.failures} were counted`)];
  }
  if (write.term === before.term) {
    const changed = slot !== before.slot || write.session !== before.session;
    return changed ? [broken('growth', slot, `${who(write)} went on as another one: ${who(before)} with slot ${before.slot}`)] : [];
  }
  const violations = [];
  const spent = (before.failures ?? 0) >= attempts;
  const settled = before.done || policy === 'atMostOnce' || spent || isOwnDone(jobs, before, write);
  if (slot > before.slot + 1) violations.push(broken('leftOut', before.slot + 1, `${who(write)} claimed slot ${slot} after ${before.slot}`));
  if (slot > before.slot && !settled) {
    violations.push(broken('overtaken', before.slot, `${who(write)} claimed slot ${slot} although ${before.slot} was neither done nor given up`));
  }
  if (slot === before.slot && (before.done || (spent && policy === 'atLeastOnce'))) {
    violations.push(broken('claimed', slot, `${who(write)} claimed slot ${slot}, which ${who(before)} had ${before.done ? 'done' : 'given up'}`));
  }
  if (write.done) violations.push(broken('done', slot, `${who(write)} said done in the claim itself`));
  return violations;
}

function tokens({ chain, claims }) {
  let highest = chain[0].term;
  return claims.flatMap((claim) => {
    if (claim.term <= highest) return [broken('token', claim.slot, `${who(claim)} claimed with a token that is not higher than ${highest}`)];
    highest = claim.term;
    return [];
  });
}

/** That each slot was claimed, and at most once by one session only, however many records lie between. */
function claimed({ claims, policy, last }) {
  const sessions = new Map();
  for (const { slot, session } of claims) sessions.set(slot, (sessions.get(slot) ?? new Set()).add(session));
  const violations = [];
  for (let slot = 1; slot <= last; slot += 1) {
    const count = sessions.get(slot)?.size ?? 0;
    if (count === 0) violations.push(broken('leftOut', slot, `slot ${slot} was never claimed`));
    if (count > 1 && policy === 'atMostOnce') violations.push(broken('claimed', slot, `slot ${slot} was claimed by ${count} sessions`));
  }
  return violations;
}

function begun({ jobs, policy, claimOf }) {
  const ofToken = new Map();
  const ofSlot = new Map();
  return jobs.flatMap((job) => {
    const { slot, token, member } = job;
    const violations = [];
    const claim = claimOf.get(token);
    if (claim?.slot !== slot) violations.push(broken('unclaimed', slot, `${member} began slot ${slot} with token ${token}, which claimed ${claim?.slot}`));
    else if (claim.member !== member) violations.push(broken('unclaimed', slot, `${member} began slot ${slot} with the token of ${who(claim)}`));
    if (ofToken.has(token)) violations.push(broken('twice', slot, `token ${token} began twice`));
    if (policy === 'atMostOnce' && ofSlot.has(slot)) {
      violations.push(broken('twice', slot, `slot ${slot} began twice: for ${ofSlot.get(slot).member}, and for ${member}`));
    }
    ofToken.set(token, job);
    ofSlot.set(slot, job);
    return violations;
  });
}

function fenced(begins) {
  let highest = 0;
  return begins.flatMap(({ slot, token, member, accepted }) => {
    const lower = token < highest;
    const before = highest;
    highest = Math.max(highest, token);
    if (accepted !== lower) return [];
    return [broken('fence', slot, `${member} with token ${token} was ${accepted ? 'accepted' : 'refused'} after token ${before}`)];
  });
}

/** That records say done only of what was done, and at least once that everything is. */
function ended({ chain, jobs, policy, attempts, last }) {
  const violations = [];
  for (const [index, write] of chain.entries()) {
    if (index === 0 || !write.done || isDone(jobs, write)) continue;
    violations.push(broken('done', write.slot, `${who(write)} says that slot ${write.slot} is done, and no job of that token ended well`));
  }
  if (policy !== 'atLeastOnce') return violations;
  const well = new Set(jobs.filter(({ accepted, status }) => accepted && status === 200).map(({ slot }) => slot));
  const final = new Map(chain.map((write, index) => [write.slot, { ...write, done: write.done || isOwnDone(jobs, write, chain[index + 1]) }]));
  for (let slot = 1; slot <= last; slot += 1) {
    const { done = false, failures = 0 } = final.get(slot) ?? {};
    if (failures >= attempts) continue;
    if (!well.has(slot)) violations.push(broken('lost', slot, `slot ${slot} was never run to its end, after ${failures} failures`));
    else if (!done) violations.push(broken('lost', slot, `slot ${slot} is left undone in the record`));
  }
  return violations;
}

/** What a report claims, held against the records and the jobs. */
function reported(report, all) {
  const { id, member, slot, outcome, runs, atMs } = report;
  const wrong = (sentence) => broken('report', slot, `${member} says of trigger ${id} for slot ${slot}: ${sentence}`);
  const violations = runs.flatMap((run) => ranAs(run, all).map(wrong));
  const own = runs.filter((run) => run.slot === slot);
  const known = ['done', 'failed', 'lost', 'taken', 'skipped', 'unknown'].includes(outcome);
  if (!known) violations.push(wrong(`${outcome}: ${report.reason ?? 'and no reason'}`));
  const ran = ['done', 'failed', 'lost'].includes(outcome);
  if (known && ran && own.at(-1)?.outcome !== outcome) violations.push(wrong(`${outcome}, but its run ended otherwise, or there was none`));
  if (known && !ran && own.length > 0) violations.push(wrong(`${outcome}, and that it ran it`));
  const later = runs.find((run) => run.slot > slot);
  if (later !== undefined && outcome !== 'taken') violations.push(wrong(`${outcome}, although it ran slot ${later.slot}, before which its own was claimed`));
  if (own.length > 1) violations.push(wrong('that it ran it twice'));
  if (outcome === 'taken' && !all.claims.some((claim) => claim.slot >= slot && claim.sentMs <= atMs)) {
    violations.push(wrong('taken, but neither it nor a later one had been claimed'));
  }
  return violations;
}

/** Of a single run: that there was such a claim, and that its end was as it says. */
function ranAs({ slot, term, outcome, recorded, status }, { chain, jobs, claimOf }) {
  const sentences = [];
  if (claimOf.get(term)?.slot !== slot) sentences.push(`it ran slot ${slot} in term ${term}, which never claimed it`);
  const closing = chain.find((write) => write.term === term && write.released);
  const saysDone = chain.some((write) => write.term === term && write.done);
  if (recorded && closing === undefined) sentences.push(`how term ${term} ended is recorded, but no such record was seen`);
  if (outcome === 'done' && !isDone(jobs, { slot, term })) sentences.push(`slot ${slot} is done in term ${term}, and no job of that token ended well`);
  if (outcome === 'done' && recorded && !saysDone) sentences.push(`slot ${slot} is done and recorded in term ${term}, and the record does not say so`);
  if (outcome !== 'done' && saysDone) sentences.push(`slot ${slot} is ${outcome} in term ${term}, and the record says done`);
  const job = jobs.find(({ token }) => token === term);
  if (status !== undefined && job?.status !== status) sentences.push(`term ${term} was answered ${status}, and the endpoint says ${job?.status}`);
  return sentences;
}

/** Those that died with their member owe no report, though one may have been on its way. */
function silent(triggers, reports, faults) {
  const heard = new Set(reports.map(({ id }) => id));
  const died = new Set(faults.flatMap(({ ended = [] }) => ended));
  const missing = triggers.filter(({ id }) => !heard.has(id) && !died.has(id));
  return missing.map(({ id, member, slot }) => broken('silent', slot, `${member} never reported trigger ${id} for slot ${slot}`));
}

function counted(entries, { chain, claims, jobs }) {
  const begun = {};
  for (const { member } of jobs) begun[member] = (begun[member] ?? 0) + 1;
  return {
    triggers: entries.filter(({ event }) => event === 'trigger').length,
    claims: claims.length,
    begun,
    refused: jobs.filter(({ accepted }) => !accepted).length,
    /** Claims of a slot that somebody else had claimed before. */
    reruns: claims.filter((claim, index) => {
      const before = claims[index - 1] ?? chain[0];
      return before.slot === claim.slot && before.session !== claim.session;
    }).length,
  };
}
