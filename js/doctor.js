// Whether a store keeps its conditions, asked on an object of its own: the steps of src/probe.rs.
import { Engine, checked } from './engine.js';
import { EdgelectError } from './errors.js';
import { unrefTimer } from './host.js';

/** What each step does: `over` which version it writes, and whether one write of it may land. */
const STEPS = [
  { step: 'update of an absent object', over: 'old', lands: false },
  { step: 'create', over: 'nothing', lands: true },
  { step: 'create again', over: 'nothing', lands: false },
  { step: 'update', over: 'current', lands: true },
  { step: 'update with a stale version', over: 'old', lands: false },
  { step: 'update with a nearly right version', over: 'near', lands: false },
  { step: 'race', over: 'current', lands: true, racers: 5 },
  { step: 'read with a stale version', over: 'old', reads: true },
  { step: 'create again, later', over: 'nothing', lands: false, later: true },
  { step: 'update with a stale version, later', over: 'old', lands: false, later: true },
];
const CLOCKS = 'clocks';
/** The ETag of no bytes. */
const NO_VERSION = '"d41d8cd98f00b204e9800998ecf8427e"';
const SECOND_MS = 1_000;
/** How long a store that asks for patience gets: R2 takes one write a second of one key. */
const PATIENCE_MS = 1_100;
/** For how long the object is left alone where nobody says: a time that is told anew with each reading shows itself after a
 * second. */
export const AGE_MS = 1_100;
/** As long as one renewal is given: three attempts and a read-back. */
const START_ROUNDS = 4;

/** How long a request may take where nobody's lease waits for it. */
const REQUEST_MS = 10_000;

/** How much the start of a process may cost. */
export const atStart = ({ settings }) => {
  const { requestTimeout } = checked(settings);
  return { races: 1, limitMs: START_ROUNDS * requestTimeout, timeoutMs: requestTimeout, ageMs: 0 };
};

/** What is wrong with a store that must not be used, as the error that stops an elector; undefined for every other. */
export const violationOf = ({ store, steps }) => {
  const broken = steps.find(({ finding }) => finding === 'violated');
  return broken && new EdgelectError(`${store}: probe step "${broken.step}": ${broken.why}`, { code: 'EDGELECT_STORE' });
};

/** One probe; `place` says where the group's objects are. */
export class Doctor {
  #place;
  #plan;
  #races;
  #untilMs;
  #timeoutMs;
  #onStep;
  #storeSkew;
  #session = randomHex();
  #sequence = 0;
  /** The number of the write that is stored, as far as is known. */
  #stored;
  #versions = { old: NO_VERSION, nothing: undefined, current: undefined };
  /** Versions that differ from the current one in one part, where a condition has several. */
  #near = [];
  #ageMs;
  /** Whether two readings of one version named another `Last-Modified`. */
  #moved = false;
  /** What the reading that first showed the last write told of time, and how old that write was then. */
  #times = {};
  #tookMs = 0;
  #store;
  /** Between what the store's clock is ahead of the own one. */
  #aheadMs = [-Infinity, Infinity];
  #steps = [];
  #engines = new Set();
  #pause;
  #close;
  #closed = new Promise((resolve) => {
    this.#close = resolve;
  });
  /** Whether it was closed: nothing more is asked then, whatever has been answered meanwhile. */
  #over = false;

  constructor(place, { races, limitMs = Infinity, timeoutMs = REQUEST_MS, ageMs = AGE_MS, onStep = () => {} }) {
    const settings = JSON.parse(place.settings);
    this.#storeSkew = checked(place.settings).storeSkew;
    // A name of its own each time, so that two probes never meet.
    const key = `${settings.lockfilePath}.probe-${randomHex()}`;
    this.#place = { ...place, settings: JSON.stringify({ ...settings, lockfilePath: key }) };
    const { json } = place.bucket ?? {};
    // Where a condition says only that nobody has succeeded the record, nobody has succeeded what does not exist.
    const epochs = json !== undefined && JSON.parse(json).kind === 'epochs';
    // The first of many epochs may be cleaned in between, so that it can be created anew.
    const steps = epochs ? STEPS.slice(1).filter(({ later, over }) => !later || over !== 'nothing') : STEPS;
    this.#plan = steps.filter(({ later }) => !later || ageMs > 0);
    this.#ageMs = ageMs;
    this.#races = races;
    this.#timeoutMs = timeoutMs;
    this.#untilMs = performance.now() + limitMs + ageMs;
    this.#onStep = onStep;
  }

  /** Resolves to the diagnosis, or to what there is of it when it is closed. */
  async run() {
    await Promise.race([this.#run(), this.#closed]);
    const [least, most] = this.#aheadMs;
    // Apart only if a clock was set meanwhile.
    const told = least > -Infinity && least <= most;
    return {
      store: this.#store,
      finding: findingOf(this.#steps, this.#plan.filter(({ over }) => over !== 'near' || this.#near.length > 0)),
      steps: this.#steps,
      clockOffset: told ? Math.round((least + most) / 2) : null,
      clockError: told ? Math.ceil((most - least) / 2) : null,
    };
  }

  /** Ends at once; what is under way leaves its object behind. */
  close() {
    this.#over = true;
    this.#close();
    clearTimeout(this.#pause);
    for (const engine of this.#engines) engine.close();
  }

  async #run() {
    try {
      await this.#takeAll();
    } finally {
      // Also where `onStep` throws.
      await this.#clean();
    }
  }

  async #takeAll() {
    let aged = false;
    for (const step of this.#plan) {
      if (step.over === 'near' && this.#near.length === 0) continue;
      if (step.later && !aged) {
        aged = true;
        await this.#sleep(this.#ageMs);
      }
      const { finding, why = null, heard } = step.reads ? await this.#readStale() : await this.#take(step);
      this.#note(step.step, finding, why);
      // Nothing comes of a write that has not landed, and nothing of a store that says nothing.
      if (finding === 'violated' || (finding === 'unclear' && (step.lands || !heard))) return;
    }
    const { finding, why = null } = this.#clocks();
    this.#note(CLOCKS, finding, why);
  }

  #note(step, finding, why) {
    const one = Object.freeze({ step, finding, why });
    this.#steps.push(one);
    this.#onStep(one);
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      this.#pause = setTimeout(resolve, ms);
      if (this.#place.unref) unrefTimer(this.#pause);
    });
  }

  /** A cache that answers by itself says that nothing has changed. */
  async #readStale() {
    for (let patient = true; ; patient = false) {
      if (this.#leftMs <= 0) return { ...unclear(NO_TIME), heard: false };
      const [read] = await this.#askAll([{ version: this.#versions.old }]);
      const { outcome, version, message } = read;
      if (outcome === 'busy' && patient && this.#leftMs > PATIENCE_MS) {
        await this.#sleep(PATIENCE_MS);
        continue;
      }
      if (outcome === 'found' && version === this.#versions.current) return { finding: 'holds' };
      // A reading without a condition may be as old, which is no cache's doing.
      if (outcome === 'unchanged' && (await this.#ask({})).version === this.#versions.current) return { finding: 'violated', why: STALE_READ };
      return { ...unclear(message ?? 'the object is not what it was before'), heard: outcome !== 'busy' && outcome !== 'unknown' };
    }
  }

  async #take({ over, lands, racers = 1 }) {
    const near = over === 'near' ? [...this.#near] : [];
    let left = racers > 1 ? this.#races : Math.max(1, near.length);
    let patient = true;
    // Where the store asks for patience, that of the first try: its write may have landed.
    let before = this.#sequence;
    for (;;) {
      if (this.#leftMs <= 0) return { ...unclear(NO_TIME), heard: false };
      if (over === 'near') this.#versions.near = near.at(-left);
      const sent = [performance.now(), Date.now()];
      const written = await this.#askAll(Array.from({ length: racers }, () => this.#write(over)));
      const [read] = await this.#askAll([{}]);
      // The one clock stands still in a suspend, the other may be set.
      this.#tookMs = Math.max(performance.now() - sent[0], Date.now() - sent[1]);
      const judged = this.#judge(written, read, { before, lands, racers });
      const answers = [...written, read];
      if (judged.finding === 'holds' && left > 1) {
        left -= 1;
        before = this.#sequence;
      } else if (judged.finding === 'unclear' && patient && this.#leftMs > PATIENCE_MS && answers.some(({ outcome }) => outcome === 'busy')) {
        patient = false;
        await this.#sleep(PATIENCE_MS);
      } else {
        // SeaweedFS makes a bucket of the wrong name with the next write, so a reading that is refused ends it too.
        const seen = read.outcome === 'found' || read.outcome === 'missing';
        return { ...judged, heard: seen && !answers.some(({ outcome }) => outcome === 'busy' || outcome === 'unknown') };
      }
    }
  }

  get #leftMs() {
    return this.#untilMs - performance.now();
  }

  #write(over) {
    this.#sequence += 1;
    const [session, sequence] = [this.#session, this.#sequence];
    // To everybody else it is a released lease: nobody ever waits for a probe. Each write is of a term of its own, because an
    // epoch's creator may overwrite it on no condition.
    const body = JSON.stringify({ leaderID: 'probe', lastUpdated: '0001-01-01T00:00:00Z', session, sequence, term: sequence });
    return { body, version: this.#versions[over], sequence };
  }

  /** Asks all at once; each answer with the number of its write. */
  async #askAll(orders) {
    const sentMs = Date.now();
    const answers = await Promise.all(orders.map((order) => this.#ask(order)));
    const nowMs = Date.now();
    for (const { date } of answers) {
      if (typeof date !== 'number') continue;
      const [least, most] = this.#aheadMs;
      // `Date` has whole seconds, and was told between these two moments.
      this.#aheadMs = [Math.max(least, date - nowMs), Math.min(most, date + SECOND_MS - sentMs)];
    }
    return answers.map((answer, index) => ({ ...answer, number: orders[index].sequence }));
  }

  #ask(order) {
    // What was under way when its time was up gets as long as one request; together they would be longer than a start may wait.
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, this.#leftMs + this.#timeoutMs));
    return new Promise((resolve, reject) => {
      if (this.#over) return;
      let answer = {};
      const onEvent = ({ type, error, ...rest }) => {
        if (type === 'answered') answer = rest;
        else {
          this.#engines.delete(engine);
          if (error) reject(error);
          else resolve(answer);
        }
      };
      const engine = new Engine({ ...this.#place, onEvent });
      this.#engines.add(engine);
      engine.ask({ ...order, timeoutMs });
    });
  }

  /** What a step has shown that made the writes after `before`. */
  #judge(written, read, { before, lands, racers }) {
    this.#store ??= read.store;
    const winners = written.filter(({ outcome }) => outcome === 'written');
    if (winners.length > 0 && !lands) return violated('took a write whose condition did not hold');
    if (read.outcome !== 'found' && read.outcome !== 'missing') return unclear(read.message);
    if (read.outcome === 'found' && read.session !== this.#session) return unclear('somebody else wrote the object of this probe');
    const found = read.sequence;
    const stored = this.#stored;
    this.#stored = found;
    const landed = found > before;
    this.#noteTimes(read, landed);
    if (winners.length > 1) return violated('accepted several of five writes on one version');
    // Whatever it answered: this is what it did.
    if (landed && !lands) return violated('refused a write and carried it out all the same');
    if (winners.length === 1 && !landed) return violated('does not show a write that it has just accepted');
    if (winners.length === 1 && winners[0].number !== found) return violated('carried out two of five writes on one version');
    if (landed) {
      this.#versions.old = this.#versions.current;
      this.#versions.current = read.version;
      this.#near = read.near ?? [];
      if (winners.some(({ version }) => version !== read.version)) return { finding: 'violated', why: OTHER_VERSION };
      // Heard or not, a single one is there.
      if (winners.length === 1 || racers === 1) return { finding: 'holds' };
      return vagueRace(written, found);
    } else if (found !== stored) return unclear('the object is not what it was before');
    const [{ outcome, message }] = written;
    if (outcome === 'refused' && !lands) return { finding: 'holds' };
    if (outcome === 'vague') return unclear('a success without a version came back, and nothing was carried out');
    return unclear(message ?? 'the store refused it for once');
  }

  /** Of a write of a moment ago the two clocks are compared; of a version that was seen before, the time of its change. */
  #noteTimes({ date, lastModified }, landed) {
    const before = this.#times.lastModified;
    if (landed) this.#times = { date, lastModified, tookMs: this.#tookMs };
    else if (typeof lastModified === 'number' && typeof before === 'number') this.#moved ||= lastModified !== before;
  }

  /** The age by the store's clocks of what was written a moment ago. */
  #clocks() {
    const { date, lastModified, tookMs } = this.#times;
    if (typeof date !== 'number' || typeof lastModified !== 'number') return unclear("the answer has no time of the store's own; ages are watched instead");
    if (this.#moved) return { finding: 'violated', why: MOVED };
    const apart = Math.max(lastModified - date, date - lastModified - Math.ceil(tookMs));
    if (apart <= this.#storeSkew + SECOND_MS) return { finding: 'holds' };
    const why = `its clocks are ${apart} ms apart, and storeSkew allows ${this.#storeSkew} ms; give every member a storeSkew that covers this, or use another store`;
    return { finding: 'violated', why };
  }

  /** Best effort: what is left of it is in nobody's way. */
  async #clean() {
    if (this.#stored !== undefined) await this.#ask({ retire: true }).catch(() => {});
  }
}

/** Clocks that can't be told cost time, because ages are watched then, and no safety. */
const findingOf = (steps, all) => {
  if (steps.some(({ finding }) => finding === 'violated')) return 'violated';
  const done = steps.filter(({ step, finding }) => step !== CLOCKS && finding === 'holds').length;
  return done === all.length ? 'holds' : 'unclear';
};

const violated = (what) =>
  ({ finding: 'violated', why: `it ${what}, so two could lead; leases need a store that keeps conditional writes` });

/** A race that somebody has won, where no answer names a version: what is stored tells, beside what was refused. */
const vagueRace = (written, found) => {
  const vague = written.filter(({ outcome }) => outcome === 'vague');
  const refused = written.filter(({ outcome }) => outcome === 'refused');
  if (vague.length === 1 && vague[0].number === found && refused.length + 1 === written.length) return { finding: 'holds' };
  if (vague.length > 1) return unclear('several of five writes on one version came back as a success without a version');
  return unclear('one of five writes was carried out, and its answer was lost or names no version');
};

const NO_TIME = 'there was no time left for it';
const STALE_READ = 'it says of an old version that nothing has changed, so that a new leader is seen late or never; something on the way caches';
const OTHER_VERSION = 'it answers a write with another version than it then shows, so that each renewal would cost a term';
const MOVED = 'it names another `Last-Modified` at each reading of one version, so that no lease is seen to grow old';

const unclear = (why) => ({ finding: 'unclear', why });

const randomHex = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
