// `GET /health/leadership`: who is asked, who waits, and the store's record where no session is at hand.
import { bucketOf } from './bucket.js';
import { show } from './engine.js';
import { hasSingleClock, unrefTimer } from './host.js';
import { R2Storage, bindingOf } from './r2.js';
import { HAS_PAGE } from './shared.js';

export const HEALTH_PATH = '/health/leadership';
export const STATUS_PATH = '/status.json';
export const METRICS_PATH = '/metrics';
export const PAGE_PATH = '/';
const PATHS = [HEALTH_PATH, STATUS_PATH, METRICS_PATH];

/** Whether a request for this path is ours. */
export const serves = (pathname, hasPage) => PATHS.includes(pathname) || (hasPage && pathname === PAGE_PATH);

/** The URL of a request, which may be Node's path alone; one that is no URL has no path of ours. */
export const urlOf = ({ url }) => {
  const text = String(url);
  try {
    // A path with two slashes in front would be read as a host.
    return new URL(text.startsWith('/') ? `http://localhost${text}` : text, 'http://localhost');
  } catch {
    return new URL('http://localhost/no-url');
  }
};

/** The answer to a request for metrics, which `samples` gives, or for the page. */
export const showing = (pathname, samples) => {
  const { headers, body } = show(pathname, pathname === METRICS_PATH ? samples() : []);
  return new Response(body, { headers });
};

const NOBODY = { status: 404, body: '{"error":"no leader is known","leaderID":null}' };

/** Storages of the application, by numbers: what was read of one is not what another one has. */
const places = new WeakMap();
let lastPlace = 0;

const placeOf = (storage) => {
  if (bucketOf(storage)) return 0;
  const place = bindingOf(storage) ?? storage;
  if (!places.has(place)) places.set(place, (lastPlace += 1));
  return places.get(place);
};

/** By storage: the questions that began to read a record, by its group. */
const reading = new WeakMap();

/** The answer out of the stored record, by an engine that `open` makes for it. The sessions that have `ended` here do not lead,
 * whatever the record says. */
export const healthOfStore = async (open, { storage, group, ...question }) => {
  if (!reading.has(storage)) reading.set(storage, new Map());
  const groups = reading.get(storage);
  // It ends within requestTimeout, and what it has read answers this one, too. On Workers one event can't wait for another.
  const before = hasSingleClock() ? undefined : groups.get(group);
  if (before) await before.catch(() => {});
  const answer = fromStore(open, storage, question);
  if (groups.has(group)) return answer;
  groups.set(group, answer);
  try {
    return await answer;
  } finally {
    groups.delete(group);
  }
};

const fromStore = (open, storage, { query, ended }) =>
  new Promise((resolve) => {
    let answer = NOBODY;
    const engine = open((event) => {
      if (event.type === 'health') ({ answer } = event);
      if (event.type === 'finished') resolve(answer);
    });
    engine.healthOfStore(query, { place: placeOf(storage), bound: storage instanceof R2Storage, ended });
  });

/** What nobody can answer who has neither a session nor a record. */
export const nobodyLeads = NOBODY;

/** The questions that one elector holds. */
export class Questions {
  /** By engine: what ends each question, and the term that they are about. */
  #held = new Map();

  /** The answer of a session, now or once there is something new to tell. `signal` fires when nobody waits for it any more; `room` is
   * what the groups of an `Electors` share, where this is one of them. */
  async ask(engine, query, { signal, unref, room }) {
    const told = engine.peerAsks(query, room?.isFull === true);
    if (told.held === undefined) return told;
    const { held, forMs } = told;
    // What one event waits for, another one can't wake.
    if (engine.isOnWorkers) return engine.peerAnswer(held, true) ?? NOBODY;
    return new Promise((resolve) => {
      const { ends } = this.#heldBy(engine);
      const settle = (answer) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
        ends.delete(end);
        if (ends.size === 0) this.#held.delete(engine);
        if (room) room.held -= 1;
        resolve(answer);
      };
      const asked = (ask) => {
        // One that breaks down over the question is none any more, and tells so itself.
        try {
          return engine.alive ? ask() : NOBODY;
        } catch {
          return NOBODY;
        }
      };
      const end = (due) => {
        const answer = asked(() => engine.peerAnswer(held, due));
        if (answer) settle(answer);
      };
      const leave = () => {
        asked(() => engine.peerLeaves(held));
        settle(NOBODY);
      };
      const timer = setTimeout(() => end(true), forMs);
      if (unref) unrefTimer(timer);
      ends.add(end);
      if (room) room.held += 1;
      if (signal?.aborted) leave();
      else signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Something may have happened: those whose term is over are answered. */
  turn(engine) {
    const held = this.#held.get(engine);
    if (!held) return;
    const steady = engine.alive ? engine.steadyTerm : undefined;
    if (engine.alive && steady === held.steady) return;
    held.steady = steady;
    for (const end of [...held.ends]) end(false);
  }

  #heldBy(engine) {
    if (!this.#held.has(engine)) this.#held.set(engine, { ends: new Set(), steady: engine.steadyTerm });
    return this.#held.get(engine);
  }
}

/** A listener for the servers of Node, Express among them, that answers by `elector.handleRequest`; what is not for it goes to
 * `next`, where there is one. */
export const nodeHandler = (elector) => async (incoming, outgoing, next) => {
  // The path as it was sent: parsed as a URL, `//x/metrics` and `/a/../metrics` would pass what a proxy closes.
  const [pathname] = incoming.url.split('?', 1);
  const search = incoming.url.slice(pathname.length);
  if (!serves(pathname, elector[HAS_PAGE])) return next ? next() : void outgoing.writeHead(404).end();
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  try {
    const { method } = incoming;
    const { signal } = gone;
    const response = await elector.handleRequest({ method, url: `http://localhost${pathname}${search}`, signal });
    const body = await response.text();
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(body);
  } catch {
    if (!outgoing.headersSent) outgoing.writeHead(500);
    outgoing.end();
  }
};
