// Heartbeats between the members of the npm package, on ways of their own: the judge of the election never hears of them, so whatever
// an election made of one would break a rule.
import { newChance } from './runtime.mjs';

/** Whoever is here answers so late at most, one way. */
const TRAVEL_MS = 20;

export class Hearts {
  #schedule;
  #chance;

  constructor(schedule, seed) {
    this.#schedule = schedule;
    this.#chance = newChance(seed ^ 0xbea75);
    /** One in so many is lost, one way. */
    this.lost = this.#chance.pick([0, 40, 6]);
  }

  /** What a member sets. */
  options(leaseMs) {
    const heartbeat = Math.max(100, Math.round(leaseMs / (2 + this.#chance.below(4))));
    return { heartbeat, suspectAfter: heartbeat * (2 + this.#chance.below(3)) };
  }

  /** Sends one to the member that answers at `host`; others never answer. */
  async beat({ asker, host, query, from, signal }) {
    const { runtime, faces, healed, count } = this.#schedule;
    const travels = () => runtime.sleep(1 + this.#chance.below(TRAVEL_MS));
    const isLost = () => !healed && this.lost > 0 && this.#chance.oneIn(this.lost);
    const never = new Promise(() => {});
    count('heartbeat');
    await travels();
    const asked = [...faces.values()].find(({ options, heart }) => heart && options.serverAddr === host);
    if (!asked || isLost()) return never;
    if (asked.session === undefined) throw new TypeError('nobody answers there');
    asked.heart.asked(from);
    const { response } = await asked.hear(query);
    const [body, proof] = [await response.text(), response.headers.get('edgelect-proof')];
    await travels();
    if (isLost()) return never;
    if (response.status === 200 && !signal.aborted) asker.heart.told(JSON.parse(body).leaderID);
    return { status: response.status, headers: proof === null ? {} : { 'edgelect-proof': proof }, body };
  }
}

/** Of whom one member has heard, and whom it suspects: what it is told is true. */
export class Heart {
  #member;
  #heardMs = new Map();
  #askedMs = new Map();
  #suspects = new Set();

  constructor(member) {
    this.#member = member;
  }

  /** Another one has sent a heartbeat. A leader watches those who send them, also one that came just before its term. */
  asked(from) {
    this.#askedMs.set(from, this.#member.runtime.now);
    if (this.#member.leadsNow) this.told(from);
  }

  /** A leader has answered one. */
  told(serverId) {
    this.#heardMs.set(serverId, this.#member.runtime.now);
  }

  suspects(serverId) {
    const { schedule, options, runtime } = this.#member;
    schedule.count('onSuspect');
    if (this.#suspects.has(serverId)) this.#broke('somebody is suspected once', serverId);
    this.#suspects.add(serverId);
    const silentMs = runtime.now - (this.#heardMs.get(serverId) ?? this.#askedMs.get(serverId));
    // Whoever was never heard of is not suspected. At its end the schedule waits for nothing more.
    if (!schedule.over && !(silentMs >= options.suspectAfter)) this.#broke('a suspect has been silent', `${serverId} for ${silentMs} ms`);
  }

  recovers(serverId) {
    this.#member.schedule.count('onRecover');
    if (!this.#suspects.delete(serverId)) this.#broke('who recovers was suspected', serverId);
  }

  /** How many are suspected; none after the end of all sessions. */
  get suspected() {
    return this.#suspects.size;
  }

  #broke(check, text) {
    this.#member.broke(check, text);
  }
}
