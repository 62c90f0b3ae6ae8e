// The deployed Worker, as its entry ships: its events, its variables, the job that it calls, and what its log says.
import { Face } from './members.mjs';
import { callsJob } from './runtime.mjs';

/** A variable for each option. */
const VARIABLES = {
  serverId: 'SERVER_ID', frequentInterval: 'FREQUENT_INTERVAL', infrequentInterval: 'INFREQUENT_INTERVAL',
  leaderTimeout: 'LEADER_TIMEOUT', follow: 'FOLLOW', margin: 'MARGIN', storeSkew: 'STORE_SKEW', maxLease: 'MAX_LEASE',
  policy: 'POLICY', missed: 'MISSED', period: 'PERIOD', attempts: 'ATTEMPTS', budget: 'BUDGET',
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
const STATUSES = [200, 401, 404, 503];
const TOKEN = 'a-token-that-is-long-enough-to-be-one';

/** By its name crate `worker` knows a service binding. */
class Fetcher {
  constructor(fetch) {
    this.fetch = fetch;
  }
}

const answerOf = (status) => ({ status, headers: {}, body: '' });

/** One cron trigger. */
export class Tick extends Face {
  #lines = [];
  #ended = new Map();
  #timeoutMs = 120_000;
  /** Terms that were over, as far as the world knows, when their job had answered. */
  #late = new Set();

  constructor(schedule, number, options) {
    super(schedule, `T${number}`, { ...options, serverId: options.serverId ?? 'edgelect' });
    this.asking = () => this.session;
  }

  async run({ number, slot, options }) {
    const { schedule, world, pack } = this;
    schedule.count('Worker trigger');
    this.session = world.join(JSON.stringify(this.options), '', false, number, true);
    const env = this.#env(options);
    let failed = false;
    if (this.chance.oneIn(ONE_ASKED_IN)) this.runtime.set(() => void new Visitor(this).asks(env), this.chance.below(schedule.leaseMs), { own: true });
    try {
      await pack.worker.scheduled({ cron: '', scheduledTime: slot ?? 0 }, env);
    } catch (error) {
      failed = true;
      if (!/; the log says why/.test(error?.message)) this.broke('a call fails by a known error', `scheduled: ${error?.stack ?? error}`);
    }
    this.#judge(failed);
    world.gone(this.session);
  }

  /** A group of its own name, by which its line is known. */
  #env(options) {
    const { name, chance, schedule, runtime } = this;
    const env = {
      EDGELECT_GROUPS: name.toLowerCase(), [`EDGELECT_LOCKFILE_PATH__${name}`]: this.options.lockfilePath, EDGELECT_ENDPOINT: 'https://s3.example.com', EDGELECT_BUCKET: schedule.bucket, EDGELECT_REGION: 'us-east-1',
      EDGELECT_ACCESS_KEY_ID: name, EDGELECT_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI', EDGELECT_SESSION_TOKEN: 'generation-0',
      EDGELECT_SUBREQUESTS: '10000', EDGELECT_STATUS_TOKEN: TOKEN,
    };
    for (const [option, value] of Object.entries({ ...this.options, ...options })) {
      if (VARIABLES[option] && value !== null && value !== undefined) env[`EDGELECT_${VARIABLES[option]}`] = String(value);
    }
    if (chance.oneIn(4)) {
      this.#timeoutMs = Math.max(1_000, schedule.leaseMs);
      env.EDGELECT_JOB_TIMEOUT = String(this.#timeoutMs);
    }
    const call = (request) => this.#called(request);
    if (chance.oneIn(2)) {
      env.EDGELECT_JOB_URL = `${JOB_URL}?by=${name}`;
      runtime.jobs.set(env.EDGELECT_JOB_URL, call);
    } else env.JOB = new Fetcher((request) => callsJob(call, request));
    this.env = env;
    return env;
  }

  says(line, isError) {
    this.world.note(`${this.name} logs: ${line}`);
    this.#lines.push({ line, isError });
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
      if (this.#ended.has(token)) return;
      this.#ended.set(token, how);
      world.jobEnded(session, token, how);
      world.works(session, token, false);
    };
    signal.addEventListener('abort', () => {
      // A process that stood still finds both its job too late and its term over.
      if (world.lasts(session, token) === 0) this.#late.add(token);
      if (!answered) ends(runtime.now - beganMs >= this.#timeoutMs ? 'failed' : 'lost');
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
      if (world.lasts(session, token) === 0) this.#late.add(token);
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
    const [{ line = '', isError = false } = {}] = this.#lines;
    if (this.#lines.length !== 1 || isError !== failed) this.broke('a trigger leaves one line, an error where it fails', `${failed}: ${JSON.stringify(this.#lines)}`);
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
    this.asking = () => (this.session ??= this.world.join(JSON.stringify(options), '', false));
  }

  async asks(env) {
    const { schedule, chance, pack, name, world } = this;
    if (schedule.over) return;
    const path = chance.pick(PATHS);
    const headers = chance.oneIn(2) ? { authorization: `Bearer ${TOKEN}` } : {};
    const request = pack.newRequest(`https://worker.example.com${path}`, { headers });
    const { status } = await pack.worker.fetch(request, { ...env, EDGELECT_ACCESS_KEY_ID: name }, {});
    if (this.session !== undefined) world.gone(this.session);
    schedule.count(`Worker answers ${status}`);
    if (!STATUSES.includes(status) && !schedule.over) this.broke('who asks gets an answer', `${status} of ${path}`);
  }

  close() {}
}
