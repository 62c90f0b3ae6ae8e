// The deployed Worker, as its entry ships: its events, its variables, the job that it calls, and what its log says.
import { Face } from './members.mjs';
import { callsJob, newChance } from './runtime.mjs';

/** A variable for each option. */
const VARIABLES = {
  serverId: 'SERVER_ID', frequentInterval: 'FREQUENT_INTERVAL', infrequentInterval: 'INFREQUENT_INTERVAL',
  leaderTimeout: 'LEADER_TIMEOUT', follow: 'FOLLOW', margin: 'MARGIN', storeSkew: 'STORE_SKEW', maxLease: 'MAX_LEASE',
  policy: 'POLICY', missed: 'MISSED', period: 'PERIOD', attempts: 'ATTEMPTS', budget: 'BUDGET', sustain: 'SUSTAIN',
};
const JOB_URL = 'https://jobs.example.com/run';
/** What is told of a run: its slot and term, the word for its end, and whether that is in the record. */
const RUN = /run="(\d+) term (\d+) (.*?) \d+ ms( \(not recorded\))?"/g;
/** A slot that is skipped for one of these is no failure. */
const EXPECTED = ['newGroup', 'paused'];
const WORDS = { ok: 'done', failed: 'failed', unknown: 'failed' };
const PATHS = ['/health/leadership', '/status.json', '/metrics', '/'];
/** One trigger in so many is asked while it runs. */
const ONE_ASKED_IN = 3;
/** How much longer a tick takes at most whose store is slow. */
const PARKS_MS = 10_000;
const STATUSES = [200, 401, 404, 503];
const TOKEN = 'a-token-that-is-long-enough-to-be-one';

/** By its name crate `worker` knows a service binding. */
class Fetcher {
  constructor(fetch) {
    this.fetch = fetch;
  }
}

/** One trigger in so many runs another group beside, over a lease that the world does not know. */
const ONE_BESIDE_IN = 3;

const answerOf = (status) => ({ status, headers: {}, body: '' });

/** What every event of an isolate has: a group of its own name, by which its line is known, and keys that the world knows. */
const envOf = ({ name, options, schedule }, more = {}) => {
  const env = {
    EDGELECT_GROUPS: name.toLowerCase(), [`EDGELECT_LOCKFILE_PATH__${name}`]: options.lockfilePath, EDGELECT_ENDPOINT: 'https://s3.example.com', EDGELECT_BUCKET: schedule.bucket, EDGELECT_REGION: 'us-east-1',
    EDGELECT_ACCESS_KEY_ID: name, EDGELECT_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI', EDGELECT_SESSION_TOKEN: 'generation-0',
    EDGELECT_SUBREQUESTS: '10000', EDGELECT_STATUS_TOKEN: TOKEN,
  };
  for (const [option, value] of Object.entries({ ...options, ...more })) {
    if (VARIABLES[option] && value !== null && value !== undefined) env[`EDGELECT_${VARIABLES[option]}`] = String(value);
  }
  return env;
};

/** The other group of a trigger: its one line, and its jobs, whose tokens grow. */
class Beside {
  lines = [];
  #face;

  constructor(face, env) {
    this.#face = face;
    const { name, runtime } = face;
    const own = `X${name}`;
    env.EDGELECT_GROUPS += `,${own.toLowerCase()}`;
    env[`EDGELECT_LOCKFILE_PATH__${own}`] = 'others.json';
    if (!name.startsWith('T')) return;
    const url = `${JOB_URL}?by=${own}`;
    env[`EDGELECT_JOB_URL__${own}`] = url;
    runtime.jobs.set(url, (request) => this.#called(request));
  }

  async #called({ headers, signal }) {
    const { schedule, runtime, chance } = this.#face;
    const token = Number(headers['edgelect-token']);
    schedule.count('Worker job of another group');
    if (!(token > (schedule.newestBeside ?? 0))) this.#face.broke('S2 a token of another group grows', `${token} after ${schedule.newestBeside}`);
    schedule.newestBeside = token;
    const { deaths } = runtime;
    await runtime.sleep(1 + chance.below(2 * schedule.leaseMs));
    if (deaths !== runtime.deaths) return new Promise(() => {});
    return answerOf(signal.aborted || chance.oneIn(4) ? 503 : 200);
  }

  get failed() {
    return this.lines.some(({ isError }) => isError);
  }
}

/** Calls the entry as Cloudflare does; whether the trigger has failed for its own group. */
const fires = async (face, time, env, own) => {
  let failed = false;
  try {
    await face.pack.worker.scheduled({ cron: '', scheduledTime: time }, env);
  } catch (error) {
    if (!/; the log says why/.test(error?.message)) face.broke('a call fails by a known error', `scheduled: ${error?.stack ?? error}`);
    failed = true;
  }
  const { beside } = face;
  if (!beside) return failed;
  if (beside.lines.length !== 1) face.broke('a trigger leaves one line for each group', JSON.stringify(beside.lines));
  const fails = own.some(({ isError }) => isError);
  if (failed !== (fails || beside.failed)) face.broke('a trigger fails if one of its groups does', `${failed}: ${JSON.stringify([own, beside.lines])}`);
  return fails;
};

const besideOf = (face, env) => (face.chance.oneIn(ONE_BESIDE_IN) ? new Beside(face, env) : undefined);

/** The one line that a trigger leaves. */
const lineOf = (face, lines, failed) => {
  const [{ line = '', isError = false } = {}] = lines;
  if (lines.length !== 1 || isError !== failed) face.broke('a trigger leaves one line, an error where it fails', `${failed}: ${JSON.stringify(lines)}`);
  return line;
};

/** Cloudflare ends the isolate, and starts another one for the next event. */
const evict = (schedule) => {
  if (schedule.healed || schedule.over) return;
  schedule.count('Worker evicted');
  schedule.world.note('the isolate ends');
  schedule.runtime.dies();
  for (const face of schedule.faces.values()) face.dies();
  schedule.pack.worker.reset();
};

/** It does so now and then. */
export const evictions = async (schedule, chance) => {
  schedule.evicts = true;
  while (!schedule.healed && !schedule.over) {
    await schedule.runtime.sleep(1 + chance.below(6 * schedule.leaseMs));
    evict(schedule);
  }
};

/** A Worker without a job: each trigger leads, or follows, until its time is over, and parks. */
export class Cron {
  constructor(schedule, options, seed) {
    Object.assign(this, { schedule, options, chance: newChance(seed ^ 0xc405) });
  }

  async live() {
    const { schedule, chance, options: { leaderTimeout, maxLease, storeSkew = 0 } } = this;
    // A tick has to outlast the grace of a dead leader, and four requests.
    const graceMs = Math.max(leaderTimeout, maxLease ?? 0, storeSkew + 2_000);
    const everyMs = graceMs + storeSkew + leaderTimeout + 2_000 + chance.below(2 * leaderTimeout);
    for (let number = 0; !schedule.over;) {
      // Cloudflare fires a trigger late now and then, or twice.
      const lateMs = chance.oneIn(6) ? chance.below(2 * everyMs) : 0;
      const times = chance.oneIn(8) ? 2 : 1;
      for (let copies = 0; copies < times && !schedule.over; copies += 1) {
        void new LeadingTick(schedule, number++, this.options).run(everyMs, lateMs);
        // Each event has a turn of its own.
        await schedule.runtime.sleep(1 + chance.below(100));
      }
      await schedule.runtime.sleep(everyMs);
    }
  }
}

class LeadingTick extends Face {
  #lines = [];

  constructor(schedule, number, options) {
    // A name of its own: who has it answers for its record.
    super(schedule, `C${number}`, { ...options, serverId: 'cron' });
    this.asking = () => this.session;
  }

  async run(everyMs, lateMs) {
    const { schedule, world, runtime, chance } = this;
    schedule.count('Worker tick');
    this.session = world.join(JSON.stringify(this.options), '', undefined, undefined, true);
    this.sessions = [this.session];
    // As a trigger a minute has 63 s: the next one finds it parked.
    const sustainMs = everyMs + 1_000 + chance.below(4_000);
    const env = envOf(this, { sustain: sustainMs });
    this.beside = besideOf(this, env);
    if (chance.oneIn(ONE_ASKED_IN)) runtime.set(() => void new Visitor(this).asks(env), chance.below(everyMs), { own: true });
    const beganMs = runtime.now;
    const failed = await fires(this, chance.oneIn(8) ? 0 : Date.now() - lateMs, env, this.#lines);
    this.ended = true;
    // Its park has the attempts of one write, and a read.
    const longMs = sustainMs + this.options.leaderTimeout + PARKS_MS;
    if (!schedule.over && !schedule.blocks && runtime.now - beganMs > longMs) this.broke('a tick ends in time', `${runtime.now - beganMs} ms of ${longMs}`);
    this.#judge(failed);
    world.gone(this.session);
  }

  #judge(failed) {
    const { schedule, world, session } = this;
    const line = lineOf(this, this.#lines, failed);
    const [, outcome, term] = / outcome=(led|followed|late)(?: term=(\d+))?/.exec(line) ?? [];
    schedule.count(`Worker tick ${outcome}`);
    if (outcome === undefined && !failed) this.broke('a tick says what it did', line);
    if ((outcome === 'led') !== (term !== undefined)) this.broke('a tick that led says its term', line);
    if (term !== undefined && !world.claimed(session, Number(term))) this.broke('a tick led the term that it says', line);
    if (outcome === undefined || outcome === 'late') return;
    // Whoever has renewed knows that it leads.
    if (outcome === 'followed' && world.renewed(session)) this.broke('a tick that led says so', line);
    const [, requests] = / requests=(\d+)/.exec(line) ?? [];
    // What is signed anew is one step of two requests.
    if (!(requests <= this.sent && 2 * requests >= this.sent)) this.broke('a tick counts its requests', `${this.sent}: ${line}`);
    const given = outcome === 'led' && !/ (lost|problem)=/.test(line);
    if (given && !schedule.over && !world.givesBack(session, Number(term))) this.broke('a tick that led to the end parks', line);
    if (/ lost=/.test(line) && !failed) this.broke('a tick that lost its term has failed', line);
    if (failed && !/ (lost|problem)=/.test(line)) this.broke('a tick fails where somebody should look', line);
  }

  get sent() {
    return this.runtime.sent.get(this.name) ?? 0;
  }

  says(line, isError, beside) {
    this.world.note(`${this.name} logs: ${line}`);
    (beside ? this.beside.lines : this.#lines).push({ line, isError });
  }

  dies() {
    if (!this.ended) this.world.gone(this.session);
    [this.ended, this.session] = [true, undefined];
  }

  close() {}
}

/** One cron trigger of a Worker with a job. */
export class Tick extends Face {
  #lines = [];
  #ended = new Map();
  #dead = false;
  #timeoutMs = 120_000;
  /** Terms that were over, as far as the world knows, when their job had answered. */
  #late = new Set();

  constructor(schedule, number, options) {
    super(schedule, `T${number}`, { ...options, serverId: options.serverId ?? 'edgelect' });
    this.asking = () => this.session;
  }

  async run({ number, slot, options }) {
    const { schedule, world } = this;
    schedule.count('Worker trigger');
    this.session = world.join(JSON.stringify(this.options), '', undefined, number, true);
    this.sessions = [this.session];
    const env = this.#env(options);
    if (this.chance.oneIn(ONE_ASKED_IN)) this.runtime.set(() => void new Visitor(this).asks(env), this.chance.below(schedule.leaseMs), { own: true });
    this.beside = besideOf(this, env);
    this.#judge(await fires(this, slot ?? 0, env, this.#lines));
    world.gone(this.session);
    this.over = true;
  }

  /** Its job goes on elsewhere, and nobody waits for it. */
  dies() {
    if (this.over || this.#dead) return;
    this.#dead = true;
    this.world.killed(this.session);
    for (const told of this.terms.values()) {
      if (!told.over) this.schedule.count('Worker job left alone');
      told.over = true;
    }
    this.session = undefined;
  }

  #env(options) {
    const { name, chance, schedule, runtime } = this;
    const env = envOf(this, options);
    if (chance.oneIn(4)) {
      this.#timeoutMs = Math.max(1_000, schedule.leaseMs);
      env.EDGELECT_JOB_TIMEOUT = String(this.#timeoutMs);
    }
    // In an isolate that has ended nobody hears the answer.
    const call = (request) => new Promise((resolve, reject) => {
      this.#called(request).then((answer) => this.#dead || resolve(answer), (error) => this.#dead || reject(error));
    });
    if (chance.oneIn(2)) {
      env.EDGELECT_JOB_URL = `${JOB_URL}?by=${name}`;
      runtime.jobs.set(env.EDGELECT_JOB_URL, call);
    } else env.JOB = new Fetcher((request) => callsJob(call, request));
    return env;
  }

  says(line, isError, beside) {
    this.world.note(`${this.name} logs: ${line}`);
    (beside ? this.beside.lines : this.#lines).push({ line, isError });
  }

  /** The job is called. */
  async #called({ method, headers, body, signal }) {
    const { session, world, schedule, runtime } = this;
    const call = JSON.parse(new TextDecoder().decode(body));
    const token = Number(headers['edgelect-token']);
    if (method !== 'POST' || call.term !== token || call.serverId !== this.options.serverId) this.broke('a job is told whose it is', JSON.stringify(call));
    const beganMs = runtime.now;
    let answered = false;
    const term = { token, signal, remaining: () => (signal.aborted ? 0 : world.lasts(session, token)) };
    this.begins(session, term);
    world.job(session, call.slot, token);
    world.works(session, token, true);
    schedule.world.trouble(6 * schedule.leaseMs);
    // Nobody can wait for the end of a job that is elsewhere: for its caller it has ended with the call.
    const ends = (how) => {
      if (this.#dead || this.#ended.has(token)) return;
      this.#ended.set(token, how);
      world.jobEnded(session, token, how);
      world.works(session, token, false);
    };
    signal.addEventListener('abort', () => {
      // A process that stood still finds both its job too late and its term over; or it hears then that it was overtaken.
      const lateMs = runtime.now - beganMs - this.#timeoutMs;
      if (world.lasts(session, token) === 0 || lateMs === 0 || lateMs === 1) this.#late.add(token);
      if (!answered) ends(lateMs >= 0 ? 'failed' : 'lost');
      this.ends(token, answered ? 'done' : 'expired');
    }, { once: true });
    try {
      const status = await this.#works(signal);
      ends(status < 300 ? 'done' : 'failed');
      return answerOf(status);
    } catch (error) {
      ends('failed');
      throw error;
    } finally {
      answered = true;
      if (!this.#dead && world.lasts(session, token) === 0) this.#late.add(token);
    }
  }

  /** Work of a drawn kind; the status of its answer. */
  async #works(signal) {
    const { runtime, chance, schedule } = this;
    const { leaseMs, healed } = schedule;
    const kind = healed ? 'short' : chance.pick(['short', 'short', 'polls', 'polls', 'deaf', 'deaf', 'fails', 'redirects', 'breaks', 'blocks', 'silent']);
    const span = () => 1 + chance.below(chance.below(leaseMs) + 1);
    schedule.count(`Worker job ${kind}`);
    this.world.note(`${this.name} runs a job: ${kind}`);
    if (schedule.evicts && chance.oneIn(4)) runtime.set(() => evict(schedule), chance.below(leaseMs), { own: true });
    await runtime.sleep(span());
    if (kind === 'breaks') throw new TypeError('the connection was lost');
    if (kind === 'fails' || kind === 'redirects') return kind === 'fails' ? 503 : 302;
    if (kind === 'blocks' && !schedule.over) schedule.block(1 + chance.below(leaseMs));
    const untilMs = runtime.now + 3 * leaseMs;
    while (['polls', 'deaf', 'silent'].includes(kind) && runtime.now < untilMs && !schedule.over) {
      await runtime.sleep(span());
      if (kind === 'polls' && signal.aborted) return 499;
      if (kind === 'deaf' && chance.oneIn(3)) break;
    }
    return 200;
  }

  /** What the log says is what has happened. */
  #judge(failed) {
    const { schedule, world, session } = this;
    const line = lineOf(this, this.#lines, failed);
    const [, outcome = 'an error'] = / outcome=(\w+)/.exec(line) ?? [];
    schedule.count(`Worker slot ${outcome}`);
    const told = [...line.matchAll(RUN)].map(([, slot, term, words, open]) => ({ slot, token: Number(term), words, how: WORDS[words.split(/[ :]/)[0]] ?? 'lost', recorded: !open }));
    for (const { token, how } of told) {
      const known = this.#ended.get(token);
      const late = how === 'lost' && (this.#late.has(token) || schedule.stepped);
      if (how !== known && !late) this.broke('a slot is done when its job is', `term ${token} is ${known}: ${line}`);
      if (how === 'lost') world.jobEnded(session, token, 'lost');
    }
    const called = [...this.#ended.keys()].filter((token) => !told.some((run) => run.token === token));
    if (called.length > 0) this.broke('each run is told', `${called}: ${line}`);
    const bad = told.some(({ how, words }) => how !== 'done' && words !== 'paused');
    const [, why] = / why=(\w+)/.exec(line) ?? [];
    const fine = (['done', 'taken'].includes(outcome) || EXPECTED.includes(why)) && !bad;
    // The last that the store said may be an error, which is told with the slot.
    if (failed === fine && !(failed && / problem=/.test(line))) this.broke('a trigger fails where somebody should look', line);
    const [, requests] = / requests=(\d+)/.exec(line) ?? [];
    if (outcome !== 'an error' && !(requests > told.length)) this.broke('a trigger counts its requests', line);
    const recorded = told.filter((run) => run.recorded).map(({ token }) => token);
    world.reports(session, outcome, /why=newGroup/.test(line), new Float64Array(recorded));
  }

  close() {}
}

/** Somebody who asks the isolate over HTTP, by keys that the world knows as theirs. */
class Visitor extends Face {
  constructor({ schedule, name, options }) {
    super(schedule, `V${name.slice(1)}`, options);
    this.asking = () => (this.session ??= this.world.join(JSON.stringify(options), ''));
  }

  async asks(env) {
    const { schedule, chance, pack, name, world } = this;
    if (schedule.over) return;
    const path = chance.pick(PATHS);
    const headers = chance.oneIn(2) ? { authorization: `Bearer ${TOKEN}` } : {};
    const request = pack.newRequest(`https://worker.example.com${path}`, { headers });
    const response = await pack.worker.fetch(request, { ...env, EDGELECT_ACCESS_KEY_ID: name }, { waitUntil: () => {} });
    const { status } = response;
    if (path === PATHS[0] && status === 200) this.#judge(await response.json());
    if (this.session !== undefined) world.gone(this.session);
    schedule.count(`Worker answers ${status}`);
    if (!STATUSES.includes(status) && !schedule.over) this.broke('who asks gets an answer', `${status} of ${path}`);
  }

  dies() {
    if (this.session !== undefined) this.world.gone(this.session);
    this.session = undefined;
  }

  /** Whoever says that it leads does. */
  #judge({ term, leaderID, remainingMs, source }) {
    const { schedule, world } = this;
    schedule.count(`Worker says who leads${source ? ` by the ${source}` : ''}`);
    if (source) {
      const led = [...schedule.faces.values()].some(({ sessions = [] }) => sessions.some((session) => world.claimed(session, term)));
      if (leaderID !== this.options.serverId || !led) this.broke('who answers for its record has led', `term ${term} of ${leaderID}`);
      return;
    }
    const left = [...schedule.faces.values()].map(({ session }) => (session === undefined ? 0 : world.lasts(session, term)));
    if (!(remainingMs > 0) || (!schedule.stepped && Math.max(...left) < remainingMs)) this.broke('who says that it leads does', `${remainingMs} ms of term ${term}, not ${Math.max(...left)}`);
  }

  close() {}
}
