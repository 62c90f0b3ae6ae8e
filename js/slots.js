// The jobs of one trigger: what the engine claims is run here, each slot in a term of its own.
import { EdgelectError } from './errors.js';
import { Fence } from './fence.js';
import { setTimer } from './host.js';

// How long a job whose authority has ended is waited for: nobody can end it from outside, and its result counts no more.
const LINGER_MS = 1_000;

/** Why a job is told to stop, whose end still counts where it comes in time. */
const TOLD = ['stopped', 'stepDown', 'paused'];

/** Runs the slots that `open` claims; `open(onEvent)` gives the engine, `newTerm(token, hooks)` the term that a job gets,
 * `endTerm(term, reason)` fires its signal, and `noteEnd(term, reason)` has it say so before its listeners are called. */
export class SlotRuns {
  #engine;
  #job;
  #newTerm;
  #noteEnd;
  #endTerm;
  #signal;
  #term = null;
  /** That of the term. */
  #fence = null;
  /** The token of the term whose job was begun last. */
  #begun;
  #runs = [];
  #jobs = new Set();
  #over = null;
  #failure = null;
  /** Why the store did not take the end of the last job. */
  #unrecorded;
  #ended = false;
  #settle;

  constructor({ job, newTerm, noteEnd, endTerm, signal }) {
    this.#job = job;
    this.#newTerm = newTerm;
    this.#noteEnd = noteEnd;
    this.#endTerm = endTerm;
    this.#signal = signal;
  }

  /** Resolves to the result of the trigger. */
  async run(open) {
    const finished = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#engine = open((event) => this.#onEvent(event));
    const onAbort = () => this.#engine.stop(false);
    this.#signal?.addEventListener('abort', onAbort, { once: true });
    try {
      this.#engine.run();
      if (this.#signal?.aborted) onAbort();
      await finished;
      await this.#lingering();
    } finally {
      this.#signal?.removeEventListener('abort', onAbort);
    }
    return this.#result();
  }

  #onEvent(event) {
    const { type, term, reason } = event;
    if (type === 'acquired') this.#onAcquired(event);
    else if (type === 'lost') this.#onLost(term, reason);
    else if (type === 'slotClosed') {
      const run = this.#runs.find((one) => one.term === term);
      if (run) run.recorded = event.recorded;
      const failing = event.recorded ? undefined : this.#engine.problem();
      this.#unrecorded = failing && storeError(failing);
    } else if (type === 'slotsOver') {
      this.#over = event;
      // A store that has failed to the end of the budget said of nobody that they hold the lease, and one that has not answered a
      // claim may be why that is unknown.
      const failing = ['budget', 'unknown'].includes(event.why) && event.problem ? this.#engine.problem() : undefined;
      if (failing) this.#failure = storeError(failing);
    } else if (type === 'failed') this.#failure = storeError(event);
    else if (type === 'finished') {
      this.#over ??= {};
      if (this.#term) this.#onLost(this.#term.token, event.error ? 'trap' : 'stopped');
      // An error must not hide a job that was run.
      if (event.error && this.#runs.length === 0) this.#settle.reject(event.error);
      else {
        this.#failure ??= event.error;
        this.#settle.resolve();
      }
    }
  }

  #onAcquired({ term: token, slot, previous = null }) {
    if (this.#term) this.#onLost(this.#term.token, 'expired');
    const resign = () => {
      if (this.#term !== term) return;
      this.#engine.stop(false);
      // While the engine tells of an event, it tells of the end afterwards.
      if (this.#term === term) this.#noteEnd(term, 'stopped');
    };
    const fence = new Fence(this.#engine, token, {
      onOver: (reason) => this.#onLost(token, reason),
      onSeen: (reason) => this.#noteEnd(term, reason),
      onProven: () => this.#begin(term, run),
      unref: false,
    });
    // The caller's signal may be over before it says so: whoever looks at the term looks at it, too.
    const stops = () => {
      if (!this.#signal?.aborted) return false;
      this.#engine.stop(false);
      // While the engine tells of an event, it tells of the end afterwards.
      if (this.#term === term) this.#noteEnd(term, 'stopped');
      return true;
    };
    const looks = {
      get remaining() {
        return stops() ? 0 : fence.remaining;
      },
    };
    const term = this.#newTerm(token, { slot, fence: looks, resign });
    this.#term = term;
    this.#fence = fence;
    const run = { slot, term: token, outcome: 'lost', durationMs: 0, recorded: false, previous };
    this.#runs.push(run);
    run.beganMs = performance.now();
    fence.watch();
  }

  /** Begins the job, at the first check at which there is authority. */
  #begin(term, run) {
    if (this.#begun === run.term) return;
    this.#begun = run.term;
    run.beganMs = performance.now();
    const { beganMs } = run;
    const work = (async () => this.#job(term))();
    const ended = work.then(
      (value) => this.#onEnded(run, beganMs, { outcome: 'done', value }),
      (error) => this.#onEnded(run, beganMs, { outcome: 'failed', error }),
    );
    this.#jobs.add(ended);
    void ended.then(() => this.#jobs.delete(ended));
  }

  #onEnded(run, beganMs, { outcome, ...rest }) {
    // What ends later changes nothing of what was told.
    if (this.#ended) return;
    run.durationMs = Math.max(0, Math.round(performance.now() - beganMs));
    // One that was told to stop and threw did as it was told; one that ended well has ended well, if it was in time.
    const told = run.stopped !== undefined;
    const inTime = !told || (run.stopped === 'stopped' && this.#engine.endsInTime(run.term));
    if (inTime && (outcome === 'done' || !told)) {
      delete run.error;
      Object.assign(run, { outcome }, rest);
    }
    const failed = run.outcome === 'failed';
    const result = failed ? 'failed' : run.outcome === 'done' ? 'ok' : 'stopped';
    const { durationMs: tookMs } = run;
    // The election decides whether it had authority to the end; after a suspend it says here that it had not.
    this.#engine.slotEnded(run.term, { done: run.outcome === 'done', failed, result, tookMs });
  }

  #onLost(token, reason) {
    const term = this.#term;
    if (term?.token !== token) return;
    this.#term = null;
    this.#fence.close();
    // Gone before its job was begun: nobody else would say so.
    if (this.#begun !== token) this.#engine.slotEnded(token, { done: false, failed: false, result: 'stopped', tookMs: 0 });
    const run = this.#runs.find((one) => one.term === token);
    this.#endTerm(term, reason);
    if (reason === 'done') return;
    run.stopped = TOLD.includes(reason) ? 'stopped' : reason;
    if (run.stopped !== 'stopped') {
      run.outcome = 'lost';
      delete run.value;
    }
    if (run.outcome !== 'lost') return;
    run.error = term.signal.reason;
    run.durationMs = Math.max(0, Math.round(performance.now() - run.beganMs));
  }

  async #lingering() {
    if (this.#jobs.size === 0) return;
    let forget;
    const late = new Promise((resolve) => {
      forget = setTimer(LINGER_MS, resolve);
    });
    await Promise.race([Promise.allSettled([...this.#jobs]), late]);
    forget();
  }

  #result() {
    const { why, outcome = 'skipped', saysNothing = true, slot = null, leftOut = 0, aheadMs, shown, problem, reason = 'it was stopped' } = this.#over ?? {};
    this.#ended = true;
    for (const run of this.#runs) {
      delete run.stopped;
      delete run.beganMs;
    }
    const runs = this.#runs;
    const own = runs.findLast((run) => run.slot === slot) ?? (why ? undefined : runs.at(-1));
    if (own?.outcome !== 'done') this.#signal?.throwIfAborted();
    // An error says that nothing was claimed: it must not hide a job that was run, nor a claim that may have landed.
    if (runs.length === 0 && saysNothing && this.#failure) throw this.#failure;
    if (runs.length === 0 && typeof aheadMs === 'number') throw aheadError(slot, aheadMs);
    // Of an earlier slot the claims that followed have said what became of it.
    const fault = this.#failure ?? (own?.recorded === false ? this.#unrecorded : undefined);
    const more = { leftOut, runs, ...(fault && { fault }) };
    if (own) return { ...own, ...more };
    const taken = outcome === 'taken' && { by: shown?.by ?? null, finished: shown?.finished ?? false };
    return { outcome, slot, reason: problem ? `${reason}: ${problem}` : reason, previous: null, ...taken, ...more };
  }
}

const storeError = ({ message, status, storeCode, cause }) => new EdgelectError(message, { code: 'EDGELECT_STORE', status, storeCode, cause });

const aheadError = (slot, aheadMs) =>
  new EdgelectError(
    `slot = ${new Date(slot).toISOString()}: is ${aheadMs} ms ahead of the store's clock, more than storeSkew; ` +
      'is it in milliseconds, and is this machine\'s clock right?',
    { code: 'EDGELECT_SLOT', field: 'slot' },
  );
