// An operator's calls: what is asked in JavaScript is what the record carries, and what the call tells is true.
import { Face, newCaller } from './members.mjs';

const CODES = ['EDGELECT_STORE', 'EDGELECT_UNKNOWN', 'EDGELECT_NOBODY_LEADS'];

/** Asks by an elector of its own, which never competes. */
export class Operator extends Face {
  #asked = 0;
  #paused = false;
  #call;

  constructor(schedule, options) {
    super(schedule, 'O0', options);
    this.elector = this.newElector();
    this.session = this.world.join(JSON.stringify(options), '');
    this.asking = () => this.session;
  }

  async live() {
    const { chance, schedule, runtime } = this;
    for (;;) {
      await runtime.sleep(1 + chance.below((this.#paused ? 2 : 4) * schedule.leaseMs));
      if (schedule.healed || schedule.over) return;
      await this.#ask(this.#paused && !chance.oneIn(4) ? 'resume' : chance.pick(['stepDown', 'stepDown', 'pause', 'resume']));
    }
  }

  async #ask(kind) {
    const { chance, schedule, runtime, world, session } = this;
    this.#asked += 1;
    const untilMs = kind === 'pause' && chance.oneIn(2) ? schedule.trueMs + 1 + chance.below(4 * schedule.leaseMs) : undefined;
    const asks = { by: 'ada', why: `reason ${this.#asked}`, ...(untilMs && { until: chance.oneIn(2) ? untilMs : new Date(untilMs) }) };
    const controller = newCaller(this.caller);
    this.#call = controller;
    const ends = chance.oneIn(8) && runtime.set(() => controller.abort(new Error('the caller ends it')), chance.below(schedule.leaseMs), { own: true });
    world.note(`${this.name}: ${kind} ${asks.why}`);
    world.operates(session);
    let code;
    const receipt = await this.elector[kind]({ ...asks, signal: controller.signal }).catch((error) => {
      code = error?.message === 'the caller ends it' ? 'ended' : error?.code;
      const known = code === 'ended' || CODES.includes(code) || (code === 'EDGELECT_CONFIG' && error.field === 'until');
      if (!known) this.broke('a call fails by a known error', `${kind}: ${error?.stack ?? error}`);
    });
    if (ends) runtime.clear(ends);
    schedule.count(`${kind} ${code ?? (receipt?.written ? 'written' : 'needless')}`);
    this.#judge(kind, { ...asks, untilMs }, { receipt, code });
  }

  #judge(kind, { why, by, untilMs = null }, { receipt, code }) {
    const found = JSON.parse(this.world.operated(this.session) ?? 'null');
    // One of an earlier call may have been held up until now.
    const own = found?.own && found.why === why ? found : undefined;
    if (own && (own.ask !== kind || own.by !== by || own.untilMs !== untilMs)) {
      this.broke('a request says what was asked', `${kind} until ${untilMs}: ${JSON.stringify(own)}`);
    }
    if (own && code === 'EDGELECT_NOBODY_LEADS') this.broke('what took effect is not denied', `${kind}: ${JSON.stringify(own)}`);
    if (own || receipt?.written) this.#paused = kind === 'pause';
    if (code !== undefined) return;
    const { written, term } = receipt ?? {};
    if (typeof written !== 'boolean') return this.broke('a call tells what was asked of whom', `${kind}: ${JSON.stringify(receipt)}`);
    if (written && !own && !(found && kind === 'stepDown')) this.broke('what is written is in the store', `${kind}: ${JSON.stringify(receipt)}`);
    if (!written && (own || kind !== 'resume')) this.broke('what is written is told', `${kind}: ${JSON.stringify(receipt)}`);
    if (own && written && (term ?? null) !== own.term) this.broke('the term is told that is to end', `${term}: ${JSON.stringify(own)}`);
  }

  close() {
    this.#call?.abort(new Error('the caller ends it'));
    this.world.gone(this.session);
  }
}
