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

/** The rules of a list that are broken: `[isBroken, rule, slot, sentence]`. */
const broken = (...rules) => rules.filter(([isBroken]) => isBroken).map(([, rule, slot, sentence]) => ({ rule, slot, sentence }));
const who = ({ member, session, term }) => `${member} (session ${session}, term ${term})`;
const slotsUpTo = (last) => Array.from({ length: last }, (_slot, index) => index + 1);
const isDone = (jobs, { slot, term }) => jobs.some((job) => job.token === term && job.slot === slot && job.accepted && job.status === 200);

/** Whether the session that claimed next had done the slot before itself. */
const isOwnDone = (jobs, before, next) => next !== undefined && next.session === before.session && isDone(jobs, before);

/** The records in the order in which they replaced one another; the first one is the seed's. */
function chainOf(writes) {
  const next = new Map();
  const violations = writes.slice(1).flatMap((write) => {
    const rival = next.get(write.condition);
    if (rival === undefined) next.set(write.condition, write);
    return broken([rival !== undefined, 'chain', write.slot, `${who(write)} and ${who(rival ?? write)} both replaced one record`]);
  });
  const chain = writes.slice(0, 1);
  for (let write = next.get(chain[0].etag); write !== undefined; write = next.get(write.etag)) {
    next.delete(write.condition);
    chain.push(write);
  }
  for (const write of next.values()) violations.push(...broken([true, 'chain', write.slot, `${who(write)} replaced a record that nobody saw`]));
  return { chain, violations };
}

/** Jobs with how they ended, in the order in which they began. */
const jobsOf = (begins, ends) => begins.map((begin) => ({ ...begin, status: ends.find(({ run }) => run === begin.run)?.status }));

/** What one record may be after another. */
function succeeded(before, write, { policy, attempts, jobs }) {
  const { slot } = write;
  const failures = before.failures ?? 0;
  const flaw = broken(
    [!Number.isSafeInteger(slot), 'growth', before.slot, `${who(write)} wrote a record without a slot`],
    [slot < before.slot, 'growth', slot, `${who(write)} wrote slot ${slot} over ${before.slot}`],
    [slot === before.slot && (write.failures ?? 0) < failures, 'growth', slot, `${who(write)} forgot failures of slot ${slot}: ${failures} were counted`],
  );
  if (flaw.length > 0) return flaw;
  if (write.term === before.term) {
    const changed = slot !== before.slot || write.session !== before.session;
    return broken([changed, 'growth', slot, `${who(write)} went on as another one: ${who(before)} with slot ${before.slot}`]);
  }
  const spent = failures >= attempts;
  const settled = before.done || policy === 'atMostOnce' || spent || isOwnDone(jobs, before, write);
  const over = before.done || (spent && policy === 'atLeastOnce');
  return broken(
    [slot > before.slot + 1, 'leftOut', before.slot + 1, `${who(write)} claimed slot ${slot} after ${before.slot}`],
    [slot > before.slot && !settled, 'overtaken', before.slot, `${who(write)} claimed slot ${slot} although ${before.slot} was neither done nor given up`],
    [slot === before.slot && over, 'claimed', slot, `${who(write)} claimed slot ${slot}, which ${who(before)} had ${before.done ? 'done' : 'given up'}`],
    [write.done, 'done', slot, `${who(write)} said done in the claim itself`],
  );
}

function tokens({ chain, claims }) {
  let highest = chain[0].term;
  return claims.flatMap((claim) => {
    const before = highest;
    highest = Math.max(highest, claim.term);
    return broken([claim.term <= before, 'token', claim.slot, `${who(claim)} claimed with a token that is not higher than ${before}`]);
  });
}

/** That each slot was claimed, and at most once by one session only, however many records lie between. */
function claimed({ claims, policy, last }) {
  const sessions = new Map();
  for (const { slot, session } of claims) sessions.set(slot, (sessions.get(slot) ?? new Set()).add(session));
  return slotsUpTo(last).flatMap((slot) => {
    const count = sessions.get(slot)?.size ?? 0;
    return broken(
      [count === 0, 'leftOut', slot, `slot ${slot} was never claimed`],
      [count > 1 && policy === 'atMostOnce', 'claimed', slot, `slot ${slot} was claimed by ${count} sessions`],
    );
  });
}

function begun({ jobs, policy, claimOf }) {
  return jobs.flatMap(({ slot, token, member }, index) => {
    const before = jobs.slice(0, index);
    const claim = claimOf.get(token);
    const rival = before.findLast((job) => job.slot === slot);
    return broken(
      [claim?.slot !== slot, 'unclaimed', slot, `${member} began slot ${slot} with token ${token}, which claimed ${claim?.slot}`],
      [claim?.slot === slot && claim.member !== member, 'unclaimed', slot, `${member} began slot ${slot} with the token of ${claim && who(claim)}`],
      [before.some((job) => job.token === token), 'twice', slot, `token ${token} began twice`],
      [policy === 'atMostOnce' && rival, 'twice', slot, `slot ${slot} began twice: for ${rival?.member}, and for ${member}`],
    );
  });
}

function fenced(begins) {
  let highest = 0;
  return begins.flatMap(({ slot, token, member, accepted }) => {
    const before = highest;
    highest = Math.max(highest, token);
    const judged = accepted ? 'accepted' : 'refused';
    return broken([accepted === token < before, 'fence', slot, `${member} with token ${token} was ${judged} after token ${before}`]);
  });
}

/** That records say done only of what was done, and at least once that everything is. */
function ended({ chain, jobs, policy, attempts, last }) {
  const violations = chain.slice(1).flatMap((write) =>
    broken([write.done && !isDone(jobs, write), 'done', write.slot, `${who(write)} says done of slot ${write.slot}, and no job of that token ended well`]));
  if (policy !== 'atLeastOnce') return violations;
  const well = new Set(jobs.filter(({ accepted, status }) => accepted && status === 200).map(({ slot }) => slot));
  const final = new Map(chain.map((write, index) => [write.slot, { ...write, done: write.done || isOwnDone(jobs, write, chain[index + 1]) }]));
  return [...violations, ...slotsUpTo(last).flatMap((slot) => {
    const { done = false, failures = 0 } = final.get(slot) ?? {};
    const open = failures < attempts;
    return broken(
      [open && !well.has(slot), 'lost', slot, `slot ${slot} was never run to its end, after ${failures} failures`],
      [open && well.has(slot) && !done, 'lost', slot, `slot ${slot} is left undone in the record`],
    );
  })];
}

/** What a report claims, held against the records and the jobs. */
function reported({ id, member, slot, outcome, reason, runs, atMs }, all) {
  const own = runs.filter((run) => run.slot === slot);
  const ran = ['done', 'failed', 'lost'].includes(outcome);
  const known = ran || ['taken', 'skipped', 'unknown'].includes(outcome);
  const later = runs.find((run) => run.slot > slot);
  const wasClaimed = all.claims.some((claim) => claim.slot >= slot && claim.sentMs <= atMs);
  const flaws = [
    ...runs.flatMap((run) => ranAs(run, all)),
    [!known, `${outcome}: ${reason ?? 'and no reason'}`],
    [ran && own.at(-1)?.outcome !== outcome, `${outcome}, but its run ended otherwise, or there was none`],
    [known && !ran && own.length > 0, `${outcome}, and that it ran it`],
    [later && outcome !== 'taken', `${outcome}, although it ran slot ${later?.slot}, before which its own was claimed`],
    [own.length > 1, 'that it ran it twice'],
    [outcome === 'taken' && !wasClaimed, 'taken, but neither it nor a later one had been claimed'],
  ];
  return broken(...flaws.map(([isBroken, sentence]) => [isBroken, 'report', slot, `${member} says of trigger ${id} for slot ${slot}: ${sentence}`]));
}

/** Of a single run: that there was such a claim, and that its end was as it says. */
function ranAs({ slot, term, outcome, recorded, status }, { chain, jobs, claimOf }) {
  const ofTerm = chain.filter((write) => write.term === term);
  const saysDone = ofTerm.some((write) => write.done);
  const job = jobs.find(({ token }) => token === term);
  return [
    [claimOf.get(term)?.slot !== slot, `it ran slot ${slot} in term ${term}, which never claimed it`],
    [recorded && !ofTerm.some((write) => write.released), `how term ${term} ended is recorded, but no such record was seen`],
    [outcome === 'done' && !isDone(jobs, { slot, term }), `slot ${slot} is done in term ${term}, and no job of that token ended well`],
    [outcome === 'done' && recorded && !saysDone, `slot ${slot} is done and recorded in term ${term}, and the record does not say so`],
    [outcome !== 'done' && saysDone, `slot ${slot} is ${outcome} in term ${term}, and the record says done`],
    [status !== undefined && job?.status !== status, `term ${term} was answered ${status}, and the endpoint says ${job?.status}`],
  ];
}

/** Those that died with their member owe no report, though one may have been on its way. */
function silent(triggers, reports, faults) {
  const heard = new Set([...reports.map(({ id }) => id), ...faults.flatMap(({ ended = [] }) => ended)]);
  return triggers.flatMap(({ id, member, slot }) => broken([!heard.has(id), 'silent', slot, `${member} never reported trigger ${id} for slot ${slot}`]));
}

function counted(entries, { chain, claims, jobs }) {
  const begun = {};
  for (const { member } of jobs) begun[member] = (begun[member] ?? 0) + 1;
  const isRerun = (claim, before) => before.slot === claim.slot && before.session !== claim.session;
  return {
    triggers: entries.filter(({ event }) => event === 'trigger').length,
    claims: claims.length,
    begun,
    refused: jobs.filter(({ accepted }) => !accepted).length,
    /** Claims of a slot that somebody else had claimed before. */
    reruns: claims.filter((claim, index) => isRerun(claim, claims[index - 1] ?? chain[0])).length,
  };
}
