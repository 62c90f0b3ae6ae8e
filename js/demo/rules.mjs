// What must hold whoever leads, judged from the members' own reports. All of them read this one machine's clock,
// so their instants compare; a report proves authority at its instant and nothing beyond it.

export class Rules {
  /** Sentences about what was broken; empty is good. */
  broken = [];
  /** Every term reported, in the order of the instants: `{ member, term, atMs }`. */
  acquisitions = [];
  #terms = [];
  #told = new Set();
  #failoverLimitMs;

  constructor({ failoverLimitMs }) {
    this.#failoverLimitMs = failoverLimitMs;
  }

  /** A member got its authority at this instant, with this much left. */
  acquired({ member, term, atMs, remainingMs }) {
    this.#begin({ member, term, atMs, remainingMs });
    this.acquisitions.push({ member, term, atMs });
    this.acquisitions.sort((a, b) => a.atMs - b.atMs);
    this.acquisitions.forEach((now, index) => {
      const before = this.acquisitions[index - 1];
      if (before !== undefined && now.term <= before.term) {
        this.#tell(`term ${now.term} of ${now.member} came after term ${before.term} of ${before.member}: terms must grow`);
      }
    });
    this.#judgeOverlaps();
  }

  /** A member shows the term again that it could not prove for a moment: a held clock says nothing (S11). */
  shownAgain(proof) {
    this.#begin(proof);
    this.#judgeOverlaps();
  }

  /** A member still had its authority at this instant. */
  proven({ member, term, atMs, remainingMs }) {
    const open = this.#open(member, term);
    if (open === undefined) return;
    open.provenMs = Math.max(open.provenMs, atMs);
    open.fenceMs = Math.max(open.fenceMs, atMs + remainingMs);
    this.#judgeOverlaps();
  }

  /** A member's authority was over by this instant at the latest. */
  ended(member, atMs) {
    for (const term of this.#terms) {
      if (term.member !== member || term.endMs !== undefined) continue;
      // The news of the end may come late; the fence had ended the authority by itself.
      term.endMs = Math.min(atMs, term.fenceMs);
    }
    this.#judgeOverlaps();
  }

  /** A member was seen without authority; when it ended was not seen, so only what was proven counts. */
  endedUnseen(member) {
    for (const term of this.#terms) {
      if (term.member === member) term.endMs ??= term.provenMs;
    }
  }

  /** Leadership passed on within this time. */
  failover(what, tookMs) {
    if (tookMs > this.#failoverLimitMs) this.#tell(`${what} took ${tookMs} ms, over the limit of ${this.#failoverLimitMs} ms`);
  }

  /** Whether a member of this runtime has ever led. `members` are `{ name, runtime }`. */
  hasLed(runtime, members) {
    const names = members.filter((member) => member.runtime === runtime).map(({ name }) => name);
    return this.acquisitions.some(({ member }) => names.includes(member));
  }

  /** Every runtime of these members had a term. */
  everyRuntimeLed(members) {
    for (const runtime of new Set(members.map((member) => member.runtime))) {
      if (!this.hasLed(runtime, members)) this.#tell(`${runtime} never led: every runtime must lead once`);
    }
  }

  #begin({ member, term, atMs, remainingMs }) {
    this.#terms.push({ member, term, startMs: atMs, provenMs: atMs, fenceMs: atMs + remainingMs, endMs: undefined });
  }

  #open(member, token) {
    return this.#terms.find((term) => term.member === member && term.term === token && term.endMs === undefined);
  }

  #judgeOverlaps() {
    const end = (term) => term.endMs ?? term.provenMs;
    this.#terms.forEach((a, index) => {
      for (const b of this.#terms.slice(index + 1)) {
        const fromMs = Math.max(a.startMs, b.startMs);
        const toMs = Math.min(end(a), end(b));
        if (fromMs < toMs) this.#tell(`${a.member} (term ${a.term}) and ${b.member} (term ${b.term}) both had authority`);
      }
    });
  }

  #tell(sentence) {
    if (this.#told.has(sentence)) return;
    this.#told.add(sentence);
    this.broken.push(sentence);
  }
}
