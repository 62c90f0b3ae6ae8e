// A lock service of three calls, `tryAcquire`, `renew` and `release`, and the judge of the members over it. It knows no versions,
// so what is promised is less: a member leads no longer than it holds the lock, all calls under one name ask for one time, and
// the lock is released when nothing goes on under it.
import { newChance } from './runtime.mjs';

const FATES = ['usual', 'usual', 'usual', 'usual', 'lost', 'unanswered', 'late', 'twice', 'before', 'after', 'nonsense'];
const NONSENSE = [undefined, null, 1, 'true', {}];

/** The service, by the true time. */
export class Locks {
  #schedule;
  #chance;
  /** `{ owner, untilMs }`. */
  #held = null;
  /** For how long each name asks. */
  #asked = new Map();

  constructor(schedule, seed) {
    this.#schedule = schedule;
    this.#chance = newChance(seed ^ 0x10c4);
    void this.#stranger();
  }

  /** Until when this name holds the lock. */
  untilMs(owner) {
    return this.#held?.owner === owner ? this.#held.untilMs : 0;
  }

  storageOf(face) {
    const call = (name) => (_shard, owner, ...more) => this.#call(face, name, owner, more);
    return { tryAcquire: call('tryAcquire'), renew: call('renew'), release: call('release') };
  }

  async #call(face, name, owner, more) {
    const { runtime, healed, leaseMs, count } = this.#schedule;
    const chance = this.#chance;
    const ttl = name === 'release' ? undefined : more[0];
    runtime.note(face.name, name.length);
    face.world.calls(name, owner);
    const before = this.#asked.get(owner) ?? ttl;
    if (ttl !== undefined && ttl !== before) face.broke('S5 the lease is constant within a term', `${owner} asked for ${before} ms, now for ${ttl}`);
    this.#asked.set(owner, before);
    const fate = healed ? 'usual' : chance.pick(FATES);
    count(`locker ${name} ${fate}`);
    const way = () => runtime.sleep(1 + chance.below(leaseMs / 20));
    await way();
    if (fate === 'before') throw new Error('the lock service is not well');
    if (fate === 'nonsense' && name !== 'release') return chance.pick(NONSENSE);
    if (fate === 'lost') return new Promise(() => {});
    if (fate === 'late') await runtime.sleep(chance.below(3 * leaseMs));
    const answer = this.#carryOut(name, owner, ttl);
    if (fate === 'twice') void runtime.sleep(chance.below(3 * leaseMs)).then(() => this.#carryOut(name, owner, ttl));
    await way();
    if (fate === 'unanswered') return new Promise(() => {});
    if (fate === 'after') throw new Error('the lock service is not well');
    runtime.note(face.name, answer === true ? 1 : 0);
    return answer;
  }

  #carryOut(name, owner, ttl) {
    const { world, trueMs } = this.#schedule;
    if (this.#held?.untilMs <= trueMs) this.#held = null;
    const own = this.#held?.owner === owner;
    const done = name === 'tryAcquire' ? this.#held === null : own;
    if (done) this.#held = name === 'release' ? null : { owner, untilMs: trueMs + ttl };
    world.note(`locks: ${name} ${owner} ${ttl ?? ''}: ${done}`);
    return name === 'release' ? undefined : done;
  }

  /** Somebody else takes the lock at times. */
  async #stranger() {
    const schedule = this.#schedule;
    const { runtime, leaseMs } = schedule;
    while (!schedule.healed && !schedule.over) {
      await runtime.sleep(1 + this.#chance.below(3 * leaseMs));
      if (!this.#carryOut('tryAcquire', 'stranger', 1_000 + this.#chance.below(leaseMs))) continue;
      await runtime.sleep(this.#chance.below(leaseMs));
      this.#carryOut('release', 'stranger');
    }
  }
}

/** What the simulator's world is for other members, for one over the locks: what it says of its terms is held against them. */
export class LockWorld {
  #schedule;
  #face;
  /** Under which name it asked last. */
  #owner;
  #sessions = 0;
  /** `{ session, number, untilMono, untilWall }`. */
  #standing;
  #works = 0;

  constructor(schedule, face) {
    this.#schedule = schedule;
    this.#face = face;
  }

  calls(name, owner) {
    if (name !== 'release') return void (this.#owner = owner);
    if (this.#standing) this.#face.broke('S12 who releases the lock leads no more', owner);
    if (this.#works > 0) this.#face.broke('S12 nothing goes on under a lock that is released', owner);
  }

  join() {
    this.#sessions += 1;
    return this.#sessions;
  }

  acquired(session, number, remaining) {
    if (this.#works > 0) this.#face.broke('S10 old work has stopped', `term ${number}`);
    this.#schedule.count('locker terms');
    this.stands(session, number, remaining);
  }

  lost() {
    this.#standing = undefined;
  }

  /** It says how long it leads: no longer than the lock is its own. */
  stands(session, number, remaining) {
    const { runtime, locks, trueMs } = this.#schedule;
    const ownMs = Math.max(0, locks.untilMs(this.#owner) - trueMs);
    if (remaining > ownMs) this.#face.broke('I1 who leads holds the lock', `${remaining} ms in term ${number}, ${ownMs} ms of ${this.#owner}`);
    this.#standing = remaining > 0 ? { session, number, untilMono: runtime.now + remaining, untilWall: runtime.wall + remaining } : undefined;
  }

  leads(session) {
    const { runtime } = this.#schedule;
    const { session: own, number, untilMono, untilWall } = this.#standing ?? {};
    return own === session && runtime.now < untilMono && runtime.wall < untilWall ? number : undefined;
  }

  works(_session, _number, begins) {
    this.#works += begins ? 1 : -1;
  }

  configured() {}

  resigns() {}

  gone() {}

  note(line) {
    this.#schedule.world.note(line);
  }

  broke(check, text) {
    this.#schedule.world.broke(check, text);
  }
}
