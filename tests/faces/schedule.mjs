// One schedule: the world, and the members that the npm package brings into it.
import { Hearts } from './hearts.mjs';
import { Member, Trigger } from './members.mjs';
import { Locks } from './locks.mjs';
import { Objects } from './objects.mjs';
import { Operator } from './operator.mjs';
import { Runtime, enter, newChance, settle } from './runtime.mjs';
import { Held, Sharer } from './shards.mjs';
import { Cron, Tick, evictions } from './worker.mjs';

/** The simulator's. */
const EPOCH_MS = 1_795_000_000_123;
/** No schedule has so many; one that has spins. */
const MOST_TURNS = 20_000;
/** One schedule in so many has an operator, and in so many a member hears of its status, which is read at each turn then. */
const ONE_OPERATOR_IN = 3;
const ONE_HEARS_STATUS_IN = 3;
/** And in so many the members begin anew within their callbacks. */
const ONE_AFRESH_IN = 5;
/** Of sixteen schedules the one whose members are over a lock service, beside Rust's over the store. */
const LOCKERS = 2;
/** And the one whose members lead other groups as well; every second one of these runs where there is one clock. */
const MANY = 3;
/** And the one that has members which share out shards, beside all others. */
const SHARERS = 7;
/** And the one that has a Worker without a job. */
const CRONS = 11;
/** And in so many of those with slots the triggers are those of the deployed Worker. */
const ONE_WORKER_IN = 2;
/** A timer that fires so late was held up. */
const LATE_MS = 1_000;
/** How much of a stack is told. */
const FRAMES = 20;

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
process.on('uncaughtException', (error) => unhandled.push(error));

/** How many schedules this process has run. */
let runs = 0;

/** Runs the schedule of a seed; `reads` has the getters called as well. */
export const runSchedule = async ({ newWorld, pack, seed, keep = false, reads = true }) => {
  // Where an error was made is for readers; finding out costs more than most of what a schedule does.
  Error.stackTraceLimit = keep ? FRAMES : 0;
  const chance = newChance(seed);
  const worker = newChance(seed ^ 0x30_4be4).oneIn(ONE_WORKER_IN);
  const world = newWorld(seed, keep, 1 + chance.below(2), seed % 32 === MANY || seed % 16 === CRONS, worker);
  const { members: options, leases, slots, byStorage, single } = JSON.parse(world.plan());
  const counts = {};
  const schedule = {
    // A name of its own: the package keeps what it has read of a bucket for the questions of peers, and each schedule has its own time.
    bucket: `jobs-${(runs += 1)}`,
    world, chance, pack, single, engines: pack.ownWasm.engines.size, leases, leaseMs: Math.max(...leases), over: false, faces: new Map(),
    count: (what) => {
      counts[what] = (counts[what] ?? 0) + 1;
    },
    get trueMs() {
      return EPOCH_MS + world.time;
    },
    get healed() {
      return world.healed;
    },
    /** The process computes: timers and answers wait. */
    block: (ms) => {
      schedule.blocks = true;
      schedule.count('blocked');
      world.note(`the process computes for ${ms} ms`);
      const stepped = world.block(ms);
      schedule.runtime.readClocks();
      schedule.steps(stepped);
    },
    /** Its clocks may have been stepped. To ask a member with one clock would show it that, and nobody does. */
    steps: (stepped) => {
      if (stepped && single) {
        schedule.count('single clock stepped');
        schedule.stepped = true;
      }
      if (stepped && !single) for (const face of schedule.faces.values()) face.standsNow(true);
    },
  };
  schedule.runtime = new Runtime(world, seed, (name, conditional) => schedule.faces.get(name).asking(conditional));
  schedule.runtime.peerAt = (addr) => [...schedule.faces.values()].find(({ options }) => options.serverAddr === addr);
  schedule.runtime.sends = (name, ...sent) => schedule.faces.get(name).many?.sends(...sent);
  const objects = new Objects(schedule, newChance(seed ^ 0x0b7ec7));
  schedule.runtime.objects = (name, ...asked) => objects.fetch(schedule.faces.get(name), ...asked);
  schedule.runtime.single = single;
  schedule.worker = slots && worker;
  const crons = !slots && seed % 16 === CRONS;
  if (schedule.worker || crons) pack.worker.reset();
  schedule.runtime.logs = (line, isError) => {
    const [, beside, name] = /group=(x?)([ct]\d+) /.exec(line) ?? [];
    const tick = schedule.faces.get(name?.toUpperCase());
    if (tick) tick.says(line, isError, beside === 'x');
    else world.broke('a trigger leaves one line, an error where it fails', line);
  };
  enter(schedule.runtime);
  try {
    await play(schedule, { options, slots, byStorage, crons, reads, seed });
    for (const thrown of unhandled.splice(0)) world.left(`unhandled: ${thrown?.stack ?? thrown}`);
  } catch (error) {
    schedule.world.broke('nothing breaks', String(error?.stack ?? error));
  }
  const ended = JSON.parse(world.finish());
  world.free();
  return { ...ended, own: counts, trace: schedule.trace };
};

/** These options without peers. */
const alone = ({ peerMode: _, serverAddr, peerTimeout, peerSecret, peerWait, maxPeers, ...others }) => others;

/** How many terms are over. */
const overAll = (faces) => [...faces.values()].reduce((sum, { terms }) => sum + [...terms.values()].filter(({ over }) => over).length, 0);

const play = async (schedule, { options, slots, byStorage, crons, reads, seed }) => {
  const { world, runtime, faces } = schedule;
  const locks = !slots && seed % 16 === LOCKERS;
  const many = !slots && seed % 16 === MANY;
  if (locks) schedule.locks = new Locks(schedule, seed);
  schedule.hearsStatus = seed % ONE_HEARS_STATUS_IN === 0;
  schedule.hearts = new Hearts(schedule, seed);
  runtime.hearts = schedule.hearts;
  const afresh = newChance(seed ^ 0xaf7e5);
  if (!slots && afresh.oneIn(ONE_AFRESH_IN)) schedule.afresh = afresh;
  const stores = newChance(seed ^ 0x57_0e5).oneIn(2) ? 'r2' : 'storage';
  const kind = (number) => {
    if (locks || many) return locks ? 'locker' : 'many';
    return byStorage && number === 0 ? stores : undefined;
  };
  // In every second schedule with a Worker it is alone in its process, which ends then and anew.
  const isolate = schedule.worker ? newChance(seed ^ 0x150_1a7e).oneIn(2) : crons && seed % 32 === CRONS;
  if (!slots && !isolate) {
    for (const [number, one] of options.entries()) {
      const member = new Member(schedule, number, locks || many || crons ? alone(one) : one, kind(number));
      void member.live();
      void member.meddle();
    }
  }
  const shares = !slots && seed % 16 === SHARERS;
  if (shares) {
    const held = new Held();
    for (const number of [0, 1]) void new Sharer(schedule, number, alone(options[0]), held).live();
  }
  if (crons) {
    const cron = new Cron(schedule, alone(options[0]), seed);
    void cron.live();
  }
  if (isolate) void evictions(schedule, newChance(seed ^ 0xe71c7));
  if (!isolate && seed % ONE_OPERATOR_IN === 0) void new Operator(schedule, alone(options[0])).live();
  const looks = newChance(seed ^ 0x100c);
  const look = () => {
    const ended = overAll(faces);
    for (const face of faces.values()) face.read?.();
    // No timer counts what a machine slept, or what its wall clock was stepped: whoever looks first sees that a term is over (S11).
    if (overAll(faces) > ended) schedule.count('a getter saw the end');
    runtime.set(look, 1 + looks.below(schedule.leaseMs), { own: true });
  };
  if (reads) look();
  let triggers = 0;
  for (let turns = 0; ; turns += 1) {
    if (turns === MOST_TURNS) world.broke('no spinning', 'the schedule never ends');
    await turn(schedule);
    const dueMs = runtime.nextMs;
    const calls = world.run(dueMs);
    runtime.readClocks();
    // The process was paused.
    if (runtime.now > dueMs + LATE_MS) schedule.blocks = true;
    if (calls === undefined) break;
    const { answers, questions, triggers: fired, stepped } = JSON.parse(calls);
    schedule.steps(stepped);
    const tasks = [
      ...fired.map((one) => () => new (schedule.worker ? Tick : Trigger)(schedule, triggers++, alone(options[0])).run(one)),
      ...questions.map((question) => () => runtime.peerAt(question.addr).answers(question)),
      ...answers.map((answer) => () => runtime.answer(answer)),
    ];
    // Each has a turn of its own, as in Node: which timer is due at that instant, even one of the looks, changes no order.
    for (const task of tasks) {
      void task();
      await turn(schedule);
    }
    while (runtime.fireOne()) await turn(schedule);
  }
  await end(schedule, slots || shares || crons);
};

const turn = async ({ runtime, faces }) => {
  await settle();
  for (const name of runtime.active) faces.get(name).standsNow();
  runtime.active.clear();
};

/** Everything is closed, and nothing of the members is left. */
const end = async (schedule, releases) => {
  const { world, runtime, faces, pack } = schedule;
  schedule.over = true;
  schedule.trace = runtime.trace;
  world.close();
  for (const face of faces.values()) face.close();
  const isOver = () => releases && Object.values(runtime.left).every((count) => count === 0);
  for (let round = 0; round < (releases ? 1_000 : 10) && !(round > 10 && isOver()); round += 1) {
    // A trigger's slot is closed by a write, and a shard is given back by one, however often it is sent.
    runtime.close(releases);
    await settle();
  }
  const { timers, requests } = runtime.left;
  const listeners = [...faces.values()].reduce((sum, { caller }) => sum + caller.listeners, 0);
  const suspects = [...faces.values()].reduce((sum, { heart }) => sum + (heart?.suspected ?? 0), 0);
  const left = { timers, requests, suspects, engines: pack.ownWasm.engines.size - schedule.engines, listeners };
  for (const [what, count] of Object.entries(left)) if (count > 0) world.left(`${count} ${what}`);
};
