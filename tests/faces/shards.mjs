// Members that share out shards: which of them leads which is judged, while they start, stop, resign and work.
import { Face, credentialsOf } from './members.mjs';

const SHARDS = 3;

/** What all of a schedule's members hold, and have held. */
export class Held {
  /** By shard: `{ face, term }` of who led it last. */
  #newest = new Map();

  begins(face, shard, term) {
    const { face: before, term: last } = this.#newest.get(shard) ?? {};
    if (last && last.remaining() > 0 && !last.signal.aborted) face.broke('I1 one leads a shard', `shard ${shard} in term ${term.token}, and ${before.name} in ${last.token}`);
    if (last && last.token >= term.token) face.broke('I2 tokens of a shard grow', `shard ${shard}: ${term.token} after ${last.token}`);
    this.#newest.set(shard, { face, term });
  }
}

/** One member. */
export class Sharer extends Face {
  #shards;
  #told = new Map();
  /** Work that goes on, by shard: no other begins there meanwhile. */
  #works = new Map();

  constructor(schedule, number, { serverId: _, lockfilePath: _path, ...options }, held) {
    super(schedule, `S${number}`, options);
    const { chance, pack } = this;
    const limits = chance.pick([{}, { maxConnections: 2 }]);
    const storage = new pack.S3Storage({ endpoint: 'https://s3.example.com', bucket: schedule.bucket, credentials: credentialsOf(this.name) });
    this.#shards = new pack.Shards({
      ...options, ...limits, storage, serverId: this.name, warn: false, probe: false, prefix: 'part', shards: SHARDS,
      onAcquire: (shard, term) => this.#acquired(held, shard, term), onLose: (shard, reason) => this.#lost(shard, reason),
    });
  }

  #acquired(held, shard, term) {
    this.world.note(`${this.name} leads shard ${shard} in term ${term.token}`);
    this.schedule.count('shard acquired');
    if (this.#told.has(shard)) this.broke('a shard is lost before it is led again', `shard ${shard}`);
    this.#told.set(shard, term);
    held.begins(this, shard, term);
    this.#judge();
    if (!this.schedule.healed && this.chance.oneIn(8)) term.resign();
  }

  #lost(shard, reason) {
    this.world.note(`${this.name} leads shard ${shard} no more: ${reason}`);
    this.schedule.count(`shard ${reason}`);
    const term = this.#told.get(shard);
    if (!term || !term.signal.aborted) this.broke('the end of a shard is told once, after its signal', `shard ${shard}`);
    this.#told.delete(shard);
  }

  /** What it says that it leads it has authority for, and was told of. */
  #judge() {
    for (const shard of this.#shards.led()) {
      if (!this.#told.has(shard)) this.broke('a shard that is led was told', `shard ${shard}`);
    }
  }

  async #work(shard, term) {
    const { runtime, chance, schedule } = this;
    if (this.#works.get(shard)) this.broke('work of a shard has ended before the next begins', `shard ${shard} in term ${term.token}`);
    this.#works.set(shard, true);
    const deaf = chance.oneIn(3);
    // Who stops from within the work is not waited for, and this work goes on beside the next session.
    if (deaf && chance.oneIn(2)) void this.#shards.stop().catch(() => {});
    const untilMs = runtime.now + chance.below(4 * schedule.leaseMs);
    while (runtime.now < untilMs && !schedule.over && (deaf || !term.signal.aborted)) await runtime.sleep(1 + chance.below(schedule.leaseMs / 4));
    this.#works.set(shard, false);
    if (chance.oneIn(8)) throw new Error('the work failed');
  }

  async live() {
    const { chance, schedule, runtime } = this;
    // Once by one of them, as somebody who begins does, or by nobody.
    const inits = this.name === 'S0' && !chance.oneIn(4);
    for (let left = inits ? 5 : 0; left > 0; left -= 1) await this.#shards.init().catch(({ code }) => schedule.count(`shards init ${code}`));
    for (;;) {
      await runtime.sleep(1 + chance.below(schedule.leaseMs / 2));
      if (schedule.over) return;
      const works = chance.oneIn(2);
      const ended = (works ? this.#shards.lead((...how) => this.#work(...how)) : this.#shards.start()).catch((error) => {
        const known = ['EDGELECT_STORE', 'EDGELECT_STOPPED', 'EDGELECT_BUSY', 'EDGELECT_CALLBACK'].includes(error?.code) || error?.message === 'the work failed';
        if (!known) this.broke('a call fails by a known error', `shards: ${error?.stack ?? error}`);
        schedule.count(`shards ${error?.code}`);
      });
      for (let looks = 1 + chance.below(chance.pick([2, 12])); looks > 0 && !schedule.over; looks -= 1) {
        await runtime.sleep(1 + chance.below(schedule.leaseMs));
        this.#judge();
      }
      if (!schedule.over && chance.oneIn(2)) await this.#shards.stop();
      if (works && !schedule.over && chance.oneIn(3)) await ended;
    }
  }

  close() {
    void this.#shards.stop();
  }
}
