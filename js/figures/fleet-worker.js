// Many members of one group in one Worker, which ask peers and cannot be asked: an address of theirs would be the Worker's.
import { Elector, S3Storage } from 'edgelect';

// How often a leader says that it still leads, and how often members see what they were told.
const LOOK_MS = 50;

const members = new Map();
const resigning = new Set();
let ready = false;
const report = (event, more = {}) => console.log(JSON.stringify({ event, ...more }));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function start(name, { storage, spreadMs, names: _, ...options }) {
  await pause(Math.random() * spreadMs);
  const elector = new Elector({
    ...options, serverId: name, storage: new S3Storage(storage), warn: false,
    onAcquireLeadership: ({ token }) => noteLead(name, 'acquired', token),
    onLoseLeadership: ({ term, reason }) => report('lost', { name, term, reason }),
  });
  members.set(name, elector);
  await elector.start();
}

// The time is read before the elector is asked, so that it surely led then.
function noteLead(name, event, term) {
  const atMs = Date.now();
  if (members.get(name).isLeader()) report(event, { name, term, atMs, held: 0 });
}

export default {
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    if (pathname === '/resign') resigning.add(search.slice(1));
    return Response.json({ ready, leaders: [...members.values()].map((elector) => elector.leaderId()) });
  },

  // One event for as long as the process lives: electors belong to the event that made them.
  async scheduled(_event, env) {
    const setUp = JSON.parse(env.SET_UP);
    await Promise.all(setUp.names.map((name) => start(name, setUp)));
    ready = true;
    for (;;) {
      await pause(LOOK_MS);
      for (const [name, elector] of members) {
        if (resigning.delete(name)) await elector.resign();
        const { role, term } = elector.status();
        if (role === 'leader') noteLead(name, 'leads', term);
      }
    }
  },
};
