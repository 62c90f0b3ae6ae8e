// Judges the log of the fenced resource: a pure function from its entries to what was broken.
//
// All members run on one machine, so their readings of the wall clock are readings of one clock. Each act carries a `look`:
// the reading just before the member asked for its authority, and what was left of it by the answer. A look shows authority
// from its reading to `lookMs + remainingMs` and never more than there was: a member stopped between the two readings gets
// less left, not more. Where the clock stands still between I/O (workerd) the look is older than its moment and ends where a
// newer one would. When the act arrives is of no matter here: one that was held up by a SIGSTOP, or by the network,
// carries an old look and says nothing of the time of its arrival. Against those only the refusal of the resource helps; they
// are counted.

/**
 * The rules:
 * - `order`: among the accepted acts tokens never fall.
 * - `refusal`: no act was refused whose token was not lower than the highest before.
 * - `token`: one token belongs to one session.
 * - `growth`: a term that began later has the higher token.
 * - `overlap`: the authority of a term reaches from its first look to the last end that a look showed, or to where the
 *   member said that it ended (before a release left); two terms share no time, since all looks are by one clock.
 *
 * @returns `{ violations: [{ rule, sentence, entries }], terms, accepted, refused, zombies, failovers, longestGapMs, nearestMs }`
 */
export function check(entries) {
  const sound = entries.filter(isSound);
  const acts = sound.filter(({ event }) => event === 'act');
  const terms = termsOf(sound);
  const violations = [...damaged(entries), ...ordered(acts), ...oneSession(acts), ...growing(terms), ...apart(terms)];
  return { violations, terms, ...counts(acts), nearestMs: nearest(terms) };
}

const NUMBERS = { act: ['token', 'lookMs', 'remainingMs', 'atMs'], end: ['token', 'endMs'], fault: [] };

const isSound = ({ event, member, session, accepted, ...entry }) => NUMBERS[event]?.every((name) => Number.isSafeInteger(entry[name]))
  && (event === 'fault' || (typeof member === 'string' && typeof session === 'string')) && (event !== 'act' || typeof accepted === 'boolean');

const damaged = (entries) => entries.flatMap((entry, index) =>
  (isSound(entry) ? [] : [{ rule: 'log', sentence: `line ${index + 1} of the log is damaged`, entries: [entry] }]));

function ordered(acts) {
  let highest;
  return acts.flatMap((act) => {
    const lower = highest !== undefined && act.token < highest.token;
    const who = `${act.member} with token ${act.token}`;
    if (act.accepted && lower) {
      const sentence = `an act of ${who} was accepted after one of ${highest.member} with token ${highest.token}`;
      return [{ rule: 'order', sentence, entries: [highest, act] }];
    }
    if (act.accepted) highest = act;
    else if (!lower) return [{ rule: 'refusal', sentence: `an act of ${who} was refused although no higher token had come`, entries: [act] }];
    return [];
  });
}

function oneSession(acts) {
  const owners = new Map();
  return acts.flatMap((act) => {
    const owner = owners.get(act.token) ?? act;
    owners.set(act.token, owner);
    if (owner.session === act.session) return [];
    const sentence = `token ${act.token} was used by two sessions, of ${owner.member} and of ${act.member}`;
    return [{ rule: 'token', sentence, entries: [owner, act] }];
  });
}

/** The terms in the order of their first looks. An act without authority, of a member that heeds nothing, shows none. */
function termsOf(entries) {
  const terms = new Map();
  const nameOf = ({ token, session }) => `${token} ${session}`;
  for (const entry of entries) {
    const { event, member, token, session, lookMs, remainingMs } = entry;
    if (event !== 'act' || remainingMs <= 0) continue;
    const untilMs = lookMs + remainingMs;
    const name = nameOf({ token, session });
    const term = terms.get(name) ?? { member, token, session, fromMs: lookMs, untilMs, first: entry, last: entry };
    terms.set(name, term);
    if (lookMs < term.fromMs) Object.assign(term, { fromMs: lookMs, first: entry });
    if (untilMs > term.untilMs) Object.assign(term, { untilMs, last: entry });
  }
  for (const end of entries) {
    const term = end.event === 'end' ? terms.get(nameOf(end)) : undefined;
    if (term !== undefined && end.endMs < term.untilMs) Object.assign(term, { untilMs: end.endMs, last: end });
  }
  return [...terms.values()].sort((one, other) => one.fromMs - other.fromMs);
}

function growing(terms) {
  return terms.slice(1).flatMap((term, index) => {
    const before = terms[index];
    if (term.token > before.token) return [];
    const sentence = `the term of ${term.member} began after that of ${before.member}, but its token ${term.token} is not higher than ${before.token}`;
    return [{ rule: 'growth', sentence, entries: [before.first, term.first] }];
  });
}

const sharedMs = (one, other) => Math.min(one.untilMs, other.untilMs) - Math.max(one.fromMs, other.fromMs);

function apart(terms) {
  return terms.flatMap((one, index) => terms.slice(index + 1).flatMap((other) => {
    const ms = sharedMs(one, other);
    if (ms <= 0) return [];
    const [who, whoElse] = [one, other].map(({ member, token }) => `${member} (token ${token})`);
    const sentence = `${who} and ${whoElse} both had authority for ${ms} ms`;
    return [{ rule: 'overlap', sentence, entries: [one.first, one.last, other.first, other.last] }];
  }));
}

/** How near two terms of different sessions came: negative where they shared time. */
function nearest(terms) {
  const gaps = terms.slice(1).flatMap((term, index) => (term.session === terms[index].session ? [] : [-sharedMs(terms[index], term)]));
  return gaps.length === 0 ? undefined : Math.min(...gaps);
}

function counts(acts) {
  const [accepted, refused] = [true, false].map((is) => acts.filter((act) => act.accepted === is));
  // Those of a member without authority are no sign that somebody leads.
  const led = accepted.filter(({ remainingMs }) => remainingMs > 0);
  const pairs = led.slice(1).map((act, index) => [led[index], act]);
  return {
    accepted: accepted.length,
    refused: refused.length,
    // It had authority when it looked, and a newer leader had acted when its act arrived.
    zombies: refused.filter(({ remainingMs }) => remainingMs > 0).length,
    failovers: pairs.filter(([before, act]) => act.member !== before.member).length,
    longestGapMs: Math.max(0, ...pairs.map(([before, act]) => act.atMs - before.atMs)),
  };
}
