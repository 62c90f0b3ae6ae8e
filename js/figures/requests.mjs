// How many requests a leader and its followers cost: each member reaches the store through a counter of its own.
import { Elector } from 'edgelect';
import { build } from '../tools/build.mjs';
import { step } from '../tools/run.mjs';
import { answerBy, serve } from '../tools/serve.mjs';
import { SEAWEED_VERSION } from '../tools/paths.mjs';
import { line, sleep, watchCpu } from './figure.mjs';
import { newGroup, startCounter, storageOf, withStore } from './store.mjs';

const FOLLOWERS = 4;
const LONG = { timing: { leaderTimeout: 15_000, frequentInterval: 5_000, infrequentInterval: 30_000 }, warmUpLeases: 3, leases: 5 };
const SHORT = { timing: { leaderTimeout: 6_000, frequentInterval: 2_000, infrequentInterval: 5_000 }, warmUpLeases: 1.25, leases: 2 };
const WAYS = {
  tight: { follow: 'tight' },
  balanced: { follow: 'balanced' },
  frugal: { follow: 'frugal' },
  peers: { follow: 'balanced', peerMode: true },
};
// A busy machine costs a retry here and there; an extra request for each one would still be found.
const QUICK_FACTOR = 1.5;

/** Measures all ways of following at once, each in a group of its own. */
export async function measure({ quick }) {
  const length = quick ? SHORT : LONG;
  const { timing, warmUpLeases, leases } = length;
  await build(['npm']);
  return withStore(async (store) => {
    const groups = await Promise.all(Object.entries(WAYS).map(([way, options]) =>
      startGroup(store, way, { ...timing, ...options })));
    // By then every follower knows the leader and is in step with its renewals.
    const warmUpMs = warmUpLeases * timing.leaderTimeout;
    const windowMs = leases * timing.leaderTimeout;
    const cpuBusy = watchCpu();
    const fromMs = performance.now() + warmUpMs;
    await step(`Counting requests over ${leases} leases`, () => sleep(warmUpMs + windowMs));
    const window = { fromMs, toMs: fromMs + windowMs };
    const counted = Object.fromEntries(groups.map(({ way, leader, followers }) => [way, {
      leader: within(leader.counter.seen, window),
      followers: followers.map(({ counter }) => within(counter.seen, window)),
      questions: within(leader.questions, window),
    }]));
    const busy = cpuBusy();
    await step('Stopping the members', () => Promise.all(groups.map(({ stop }) => stop())));
    return { ...report(counted, length, quick), extra: { SeaweedFS: SEAWEED_VERSION, 'CPU busy': `${Math.round(busy * 100)} %` } };
  });
}

async function startGroup(store, way, options) {
  const lockfilePath = await newGroup(store, `requests-${way}`);
  const leader = await startMember(store, { ...options, lockfilePath, serverId: 'leader' });
  await leader.elector.waitForLeadership();
  const followers = await Promise.all(Array.from({ length: FOLLOWERS }, async (_, index) => {
    // Spread over the interval between two renewals, as those of a real group are.
    await sleep((options.frequentInterval * index) / FOLLOWERS);
    return startMember(store, { ...options, lockfilePath, serverId: `follower-${index + 1}` });
  }));
  // Followers first, or each stop would be a failover.
  const stop = async () => {
    await Promise.all(followers.map((member) => member.stop()));
    await leader.stop();
  };
  return { way, leader, followers, stop };
}

async function startMember(store, options) {
  const counter = await startCounter(store);
  let elector;
  const questions = [];
  const { host, close } = await serve((incoming, outgoing) => {
    questions.push({ atMs: performance.now() });
    void answerBy((request) => elector.handleRequest(request), incoming, outgoing);
  });
  elector = new Elector({ ...options, serverAddr: host, storage: storageOf(store, counter.endpoint) });
  await elector.start();
  const stop = async () => {
    await elector.stop();
    await Promise.all([close(), counter.close()]);
  };
  return { elector, counter, questions, stop };
}

const within = (all, { fromMs, toMs }) => all.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);

/** Requests a second, from the first to the last: a window's edges would add or lose one. */
function rate(members) {
  let requests = 0;
  let spanMs = 0;
  for (const seen of members) {
    requests += seen.length - 1;
    spanMs += seen.at(-1)?.atMs - seen[0]?.atMs;
  }
  return (requests / spanMs) * 1000;
}

function report(counted, { timing, warmUpLeases, leases }, quick) {
  const { leaderTimeout, frequentInterval, infrequentInterval } = timing;
  const most = (limit) => (quick ? limit * QUICK_FACTOR : limit);
  const leaders = Object.values(counted).flatMap(({ leader }) => leader);
  const puts = leaders.filter(({ method }) => method === 'PUT');
  const renewals = puts.filter(({ status }) => status === 200).length;
  const perLease = (way) => (rate(counted[way].followers) * leaderTimeout) / 1000;
  const perRenewal = (rate(counted.tight.followers) * frequentInterval) / 1000;
  const perLook = (rate(counted.frugal.followers) * infrequentInterval) / 1000;
  const each = (all) => all.length / FOLLOWERS / leases;
  const asked = each(counted.peers.questions);
  const kept = renewals / Object.keys(counted).length / ((leases * leaderTimeout) / frequentInterval);
  const row = (what, value, limit, formula, against) => {
    const shownLimit = quick ? `${formula}, here ${limit.toFixed(2)}` : formula;
    return line({ what, value, shown: value.toFixed(2), most: limit, limit: shownLimit, against, readme: true });
  };
  const least = quick ? 0.7 : 0.9;
  const alive = (what, value) => line({ what, value, shown: value.toFixed(2), least, limit: `at least ${least}` });
  const gets = Object.entries(counted).map(([way, { followers }]) => `${way} ${followers.flat().length}`).join(', ');
  return {
    title: 'requests that arrived at the store',
    lines: [
      row('leader, requests per renewal', leaders.length / renewals, most(1), '1 PUT, no GET', 'S3lect 2'),
      // A leader that renewed less would be cheap and soon deposed.
      alive('leader, renewals per frequentInterval', kept),
      // A tenth more for finding the leader's rhythm again.
      row('follower `tight`, GETs per renewal', perRenewal, most(1.1), '1, at most 1.1', 'S3lect 3 per lease'),
      row('follower `balanced`, GETs per lease', perLease('balanced'), most(1.05), '1, at most 1.05', 'S3lect 3'),
      row('follower `frugal`, GETs per infrequentInterval', perLook, most(1), '1', ''),
      row('follower with peers, GETs per lease', each(counted.peers.followers.flat()), quick ? 0.25 : 0.2, 'one in ten leases', 'S3lect 3'),
      // Otherwise a follower that has stopped would be the cheapest.
      alive('follower with peers, questions to the leader per lease', asked),
    ],
    notes: [
      `${FOLLOWERS} followers and a leader in each of ${Object.keys(counted).length} groups, over ${leases} leases of ${leaderTimeout / 1000} s, `
        + `frequentInterval ${frequentInterval / 1000} s, infrequentInterval ${infrequentInterval / 1000} s, after ${warmUpLeases} leases of warm-up.`,
      `Leaders: ${renewals} renewals, ${puts.length} PUTs, ${leaders.length - puts.length} GETs. GETs of followers: ${gets}.`,
    ],
  };
}
