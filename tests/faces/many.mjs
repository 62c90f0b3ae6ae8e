// An `Electors`: beside the group of the schedule it competes for others, with which it shares its timers and its requests.

const MOST = { maxConnections: 2 };
const OTHERS = 2;
/** So many looks are no pause of the process. */
const ENOUGH = 8;

/** A lease, and how often members look at it. */
export const pace = (leaderTimeout) => ({ leaderTimeout, frequentInterval: Math.max(50, Math.floor(leaderTimeout / 5)), infrequentInterval: leaderTimeout });

export class Many {
  #face;
  #electors;
  #others = [];
  #underWay = new Set();
  /** When a request left last, and how often it was looked at since. */
  #sentMs = 0;
  #looks = 0;
  #patienceMs;

  constructor(face, options, common, callbacks) {
    const { chance, pack, schedule } = face;
    this.#face = face;
    const { lockfilePath, ...settings } = options;
    this.#patienceMs = 4 * Math.max(settings.infrequentInterval, schedule.leaseMs);
    const fastestMs = Math.min(settings.frequentInterval, ...schedule.leases.map((leaseMs) => pace(leaseMs).frequentInterval));
    const rate = { maxRequestsPerSecond: Math.ceil((1.25 * (1 + OTHERS) * 1_000) / fastestMs) };
    const limits = chance.pick([{}, MOST, MOST, rate, { ...MOST, ...rate }]);
    this.most = limits.maxConnections ?? Infinity;
    this.#electors = new pack.Electors({ ...settings, ...limits, ...common });
    this.elector = this.#electors.add({ lockfilePath, ...callbacks });
    for (let number = 1; number <= OTHERS; number += 1) {
      const onAcquireLeadership = () => schedule.count('other group led');
      this.#others.push(this.#electors.add({ lockfilePath: `other-${number}.json`, onAcquireLeadership }));
    }
    for (const other of this.#others) void other.start().catch(() => {});
  }

  /** A request has left for the store, and is over when this promise has settled or this signal has fired. */
  sends(answer, signal) {
    const request = {};
    this.#underWay.add(request);
    [this.#sentMs, this.#looks] = [this.#face.runtime.now, 0];
    const over = () => this.#underWay.delete(request);
    answer.then(over, over);
    signal.addEventListener('abort', over, { once: true });
    this.#face.schedule.count('requests that share');
    if (this.#underWay.size > this.most) this.#face.broke('no more requests at once than may be', `${this.#underWay.size} of ${this.most}`);
  }

  /** Only a request that is under way has a turn, and each of the other groups has one leader of the two. */
  judge(rival) {
    const { underWay } = this.#electors.status();
    if (underWay > this.#underWay.size) this.#face.broke('a turn is given back', `${underWay} have one, ${this.#underWay.size} are under way`);
    this.judgeSilence();
    if (!rival) return;
    for (const [number, other] of this.#others.entries()) {
      if (other.isLeader() && rival.#others[number].isLeader()) this.#face.broke('I1 one leads another group', other.config.lockfilePath);
    }
  }

  /** The groups go on. Asks them nothing, which would show them a step of their clock. */
  judgeSilence() {
    this.#looks += 1;
    const silentMs = this.#face.runtime.now - this.#sentMs;
    if (this.#looks > ENOUGH && silentMs > this.#patienceMs) this.#face.broke('the groups go on', `nothing was sent for ${silentMs} ms`);
  }

  close() {
    for (const other of this.#others) void other.stop({ release: false });
  }
}
