// Bugs that are planted in a copy of the package, one at a time: each is found by the schedules. Where the first schedule that
// finds one comes late, the search begins `near` it.

const LOST = `      onOver: (reason) => this.#onLost(number, reason),
      onSeen: (reason) => noteEnd(term, reason, this.#causeOf(engine, reason)),`;
const TOLD = "    if (begun) void this.#call('onLoseLeadership', { term: term.token, reason: lossOf.get(term) }).fine.then(stopped);";
const WAITS = `    if (this.#work.goesOn && this.#shared?.competes === undefined) void this.#runAfterWork(engine);
    else this.#runs(engine);`;
const RESIGNS = "      // Within a callback the engine's own word comes later.\n      if (holds()) this.#onLost(number, 'resigned');";
const CHOOSES = '(hasSingleClock() ? ownTimers(unref) : new SharedTimers(unref))';

export const MUTANTS = [
  { name: 'fence-tells-nobody', near: 140, file: 'elector.js', from: LOST, to: LOST.replace('this.#onLost(number, reason)', 'reason') },
  { name: 'lost-slot-keeps-value', near: 460, file: 'slots.js', from: '      delete run.value;\n', to: '' },
  { name: 'signal-fires-late', file: 'elector.js', from: '      term.#fire(term.#loss);', to: '      setTimeout(() => term.#fire(term.#loss), 500);' },
  { name: 'loss-is-not-told', file: 'elector.js', from: TOLD, to: '    if (begun) stopped();' },
  { name: 'new-session-beside-old-work', file: 'elector.js', from: WAITS, to: '    this.#runs(engine);' },
  { name: 'released-under-work', file: 'elector.js', from: '    this.#work.after(() => engine.workEnded(number));', to: '    engine.workEnded(number);' },
  { name: 'resigns-after-the-callback', file: 'elector.js', from: RESIGNS, to: '' },
  { name: 'abort-reaches-no-fetch', file: 'host.js', from: '      return () => controller.abort();', to: '      return () => {};' },
  { name: 'lost-work-counts', file: 'elector.js', from: '        if (!term.signal.aborted) return value;', to: '        return value;' },
  { name: 'leads-without-a-clock', file: 'elector.js', from: '    return this.#fence?.leads === true;', to: '    return this.#term !== null;' },
  { name: 'caller-keeps-listeners', file: 'elector.js', from: "    other.removeEventListener('abort', onOther);", to: '' },
  { name: 'job-begins-at-each-check', file: 'slots.js', from: '    if (this.#begun === run.term) return;\n', to: '' },
  { name: 'signal-waits-for-a-turn', near: 75, file: 'fence.js', from: '  const aborted = () => seen() !== undefined || own(\'aborted\');', to: "  const aborted = () => own('aborted');" },
  { name: 'lead-keeps-the-session', file: 'elector.js', from: '    if (this.#startedByLead) await this.stop();\n    else if', to: '    if' },
  { name: 'operator-hears-no-error', file: 'elector.js', from: 'event.error ? reject(event.error) : resolve(receipt)', to: 'resolve(receipt)' },
  { name: 'pause-never-ends', file: 'elector.js', from: '    if (until !== undefined) order.until = until;', to: '' },
  { name: 'word-for-true', file: 'host.js', from: "      if (typeof answer !== 'boolean') throw new Error(`${name} gave no true or false`);", to: '' },
  { name: 'token-without-fences', file: 'elector.js', from: 'this.token = unfenced ? undefined : number;', to: 'this.token = number;' },
  { name: 'answers-unproven', file: 'elector.js', from: "'edgelect-proof': proof, ", to: '' },
  { name: 'turn-is-kept', file: 'host.js', from: '    leave?.();\n', to: '' },
  { name: 'shared-timer-fires-once', near: 45, file: 'shared.js', from: '  #fire() {\n    this.#armedMs = Infinity;\n', to: '  #fire() {\n' },
  { name: 'one-clock-shares-timers', near: 90, file: 'electors.js', from: CHOOSES, to: 'new SharedTimers(unref)' },
  { name: 'stop-frees-the-next-session', near: 2_400, file: 'elector.js', from: '    if (engine === this.#engine) this.#goOn?.();', to: '    this.#goOn?.();' },
  { name: 'end-forgets-the-next-session', file: 'elector.js', from: '      if (error) this.#tellError(error);\n      return;\n', to: '' },
  { name: 'loss-of-a-shard-is-not-told', near: 7, file: 'shards.js', from: 'this.#onLose?.(shard, reason)', to: 'undefined' },
  { name: 'shards-go-on-after-a-stop', near: 7, file: 'shards.js', from: '    over(all.stop().then(() => all.stop())', to: '    over(Promise.resolve()' },
  { name: 'recovery-is-not-told', near: 6_030, file: 'elector.js', from: "if (this.#suspects.delete(serverId)) this.#call('onRecover', serverId);", to: 'this.#suspects.delete(serverId);' },
  { name: 'r2-writes-over-anything', file: 'r2.js', from: 'onlyIf: conditionOf(etag)', to: 'onlyIf: new Headers()' },
  { name: 'who-waits-is-told-late', near: 80, file: 'elector.js', from: '    this.#questions.turn(engine);\n    if (engine !== this.#engine) return;\n    if (this.#starters', to: '    if (engine !== this.#engine) return;\n    if (this.#starters' },
];
