// What must be the same in every runtime, over a real store, though their own fetch, signals, timers and requests carry it out. What
// the wasm decides is the same everywhere, and is held once. No runtime's own names: `edgelect` is the installed package.
import { EdgelectError, Elector, S3Storage } from 'edgelect';
import { badInput } from './bad-input.mjs';
import { caught, equal, header, ok, openLane, runAll, until } from './harness.mjs';

// A lease that nobody here waits for is long enough for a machine that is busy with all the runtimes.
const FAST = { leaderTimeout: 9000, frequentInterval: 600, storeSkew: 500, follow: 'tight' };
const HEALTH = 'http://member/health/leadership';

const freshKey = (name) => `${name}/${crypto.randomUUID()}.json`;

const member = ({ endpoint, bucket, credentials }, lockfilePath, options = {}, where = {}) => {
  const storage = new S3Storage({ endpoint, bucket, region: 'us-east-1', credentials, ...where });
  // What is written to standard error is a failure.
  return new Elector({ storage, warn: false, ...FAST, lockfilePath, ...options });
};

const newGroup = async (context, name) => {
  const lockfilePath = freshKey(name);
  await member(context, lockfilePath).init();
  return lockfilePath;
};

/** A member behind a lane with these rules. */
const behind = async (context, lockfilePath, { rules, ...options } = {}) => {
  const lane = await openLane(context, { rules });
  return { lane, elector: member(context, lockfilePath, { serverId: 'a', ...options }, { endpoint: lane.endpoint }) };
};

/** The first request of a lane, once it was hung up on; its answer was not all sent. */
const hungUpOn = async (lane) => {
  const [first] = await until(async () => ((await lane.seen())[0]?.closedMs ?? null) !== null && lane.seen());
  equal(first.sent, false);
  return first;
};

/** Gives the electors of a test to `work` and stops them all, whatever happens. */
const withMembers = async (electors, work) => {
  try {
    await Promise.all(electors.map((elector) => elector.start()));
    return await work(...electors);
  } finally {
    await Promise.all(electors.map((elector) => elector.stop()));
  }
};

const election = {
  async 'lead runs the work as the leader and gives the lease back'(context) {
    const lockfilePath = await newGroup(context, 'lead');
    // A probe of 18 requests comes before each.
    const patient = { leaderTimeout: 15_000, frequentInterval: 600 };
    const elector = member(context, lockfilePath, { serverId: 'a', ...patient });
    const first = await elector.lead(async (term) => {
      // A single clock proves nothing at some readings.
      await until(() => elector.isLeader());
      ok(Number.isSafeInteger(term.token));
      ok(term.remaining() > 0 && term.remaining() <= 13_500, `${term.remaining()} ms`);
      ok(!term.signal.aborted && term.signal instanceof AbortSignal);
      const { role, serverId, group, term: token, error } = elector.status();
      equal({ role, serverId, group, token, error }, { role: 'leader', serverId: 'a', group: lockfilePath, token: term.token, error: null });
      return term.token;
    });
    equal([elector.status().role, elector.isLeader(), elector.leaderId()], ['stopped', false, null]);
    const startMs = Date.now();
    const second = await member(context, lockfilePath, { serverId: 'b', ...patient }).lead((term) => term.token);
    ok(second > first, `${second} after ${first}`);
    ok(Date.now() - startMs < 10_000, 'a released lease is not waited out');
    const failure = new Error('the work failed');
    ok((await caught(() => elector.lead(() => Promise.reject(failure)))) === failure, 'the very error comes through');
  },

  async 'signals: given up waiting, given up leading, and the end of a term'(context) {
    const lockfilePath = await newGroup(context, 'signals');
    const [a, b] = ['a', 'b'].map((serverId) => member(context, lockfilePath, { serverId }));
    await withMembers([a], async () => {
      const term = await a.waitForLeadership();
      await b.start();
      const why = new Error('long enough');
      ok((await caught(() => b.waitForLeadership({ signal: AbortSignal.abort(why) }))) === why);
      const controller = new AbortController();
      const waiting = caught(() => b.waitForLeadership({ signal: controller.signal }));
      controller.abort(why);
      ok((await waiting) === why);
      const timeout = await caught(() => b.waitForLeadership({ signal: AbortSignal.timeout(50) }));
      equal(timeout.name, 'TimeoutError');
      await b.stop();
      equal((await caught(() => b.waitForLeadership())).code, 'EDGELECT_STOPPED');
      await a.stop();
      ok(term.signal.aborted && term.remaining() === 0);
      const { reason } = term.signal;
      ok(reason instanceof EdgelectError && reason instanceof Error);
      equal([reason.name, reason.code], ['EdgelectError', 'EDGELECT_LOST']);
    });
    const controller = new AbortController();
    const enough = new Error('enough');
    const led = caught(() => a.lead((term) => new Promise((_resolve, reject) => {
      term.signal.addEventListener('abort', () => reject(term.signal.reason));
      setTimeout(() => controller.abort(enough), 10);
    }), { signal: controller.signal }));
    ok((await led) === enough);
    equal(a.status().role, 'stopped');
    // With a signal that never fires, the term's own end is heard.
    const heard = await a.lead((term) => new Promise((resolve) => {
      term.signal.addEventListener('abort', () => resolve(term.signal.reason.code));
      setTimeout(() => a.stop(), 10);
    }), { signal: new AbortController().signal });
    equal(heard, 'EDGELECT_LOST');
  },

  async 'handleRequest answers while it leads, 404 otherwise, 405 to other methods'(context) {
    const lockfilePath = await newGroup(context, 'health');
    const elector = member(context, lockfilePath, { serverId: 'a' });
    const ask = (init) => elector.handleRequest(new Request(HEALTH, init));
    equal((await ask()).status, 404);
    await withMembers([elector], async () => {
      const term = await elector.waitForLeadership();
      // A single clock proves nothing at some readings.
      const answer = await until(async () => {
        const one = await ask();
        return one.status === 200 && one;
      });
      equal(answer.headers.get('cache-control'), 'no-store');
      const { leaderID, term: token, group, remainingMs } = await answer.json();
      equal([leaderID, token, group], ['a', term.token, lockfilePath]);
      ok(remainingMs > 0 && answer.headers.get('etag').length > 2);
      const wrong = await ask({ method: 'POST', body: 'x' });
      equal([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
      equal((await elector.handleRequest(new Request('http://member/'))).status, 404);
    });
    equal((await ask()).status, 404);
  },

  async 'a storage left out is one error, and another one where the variables can\'t be read'({ variablesDenied }) {
    const error = await caught(() => new Elector({ lockfilePath: 'a' }));
    ok(error instanceof EdgelectError, String(error.stack));
    const { code, field, message, cause } = error;
    if (variablesDenied) {
      equal([code, field, cause.name], ['EDGELECT_CONFIG', 'storage', 'NotCapable']);
      ok(message.includes('--allow-env'), message);
    } else {
      equal([code, field], ['EDGELECT_CONFIG', 'EDGELECT_BUCKET']);
      equal(message, 'EDGELECT_BUCKET = (not set): name the bucket that keeps the lease');
    }
  },

  async 'an elector disposes of itself'(context) {
    const lockfilePath = await newGroup(context, 'using');
    const elector = member(context, lockfilePath, { serverId: 'a' });
    const term = await context.using(elector, () => elector.waitForLeadership());
    equal([term.signal.aborted, elector.status().role], [true, 'stopped']);
    ok((await member(context, lockfilePath).lead((next) => next.token)) > term.token);
  },
};

/** Where the runtimes' fetches differ, and must not. */
const fetching = {
  async 'a redirect to another place is not followed, by a store or a peer, and nothing is sent there'(context) {
    const lockfilePath = await newGroup(context, 'redirects');
    const elsewhere = await openLane(context);
    const where = elsewhere.endpoint.replace('http://', '');
    const to = (status) => [{ status, headers: { location: `${elsewhere.endpoint}/elsewhere` } }];
    for (const status of [301, 302, 303, 307, 308]) {
      const { elector } = await behind(context, lockfilePath, { rules: to(status) });
      const error = await caught(() => elector.init());
      equal(error.code, 'EDGELECT_STORE');
      ok(error.message.includes(`answered ${status}`), error.message);
      if (![302, 303].includes(status)) ok(error.message.includes(`redirect to "${where}" is not followed`), error.message);
    }
    const health = await openLane(context, { rules: to(307) });
    const leader = member(context, lockfilePath, { serverId: 'leader', serverAddr: health.endpoint.replace('http://', '') });
    const follower = member(context, lockfilePath, { serverId: 'b', serverAddr: '127.0.0.1:1', peerMode: true, peerTimeout: 500 });
    await withMembers([leader], async () => {
      await leader.waitForLeadership();
      await follower.start();
      await until(() => follower.status().requests.peer >= 3);
      ok(follower.status().requests.read >= 2, 'a peer that redirects is a silent one');
      await follower.stop();
    });
    ok((await health.seen()).length >= 2);
    equal(await elsewhere.seen(), []);
  },

  async 'requests go out as they were signed: host, no content type, nothing signed that a runtime rewrites'(context) {
    const { lane, elector } = await behind(context, await newGroup(context, 'headers'), { probe: false });
    await elector.lead(() => 1);
    const seen = await lane.seen();
    ok(['GET', 'PUT'].every((method) => seen.some((one) => one.method === method && one.status === 200)));
    for (const one of seen) {
      equal([header(one, 'host'), header(one, 'content-type')], [new URL(lane.endpoint).host, undefined], one.method);
      const signed = /SignedHeaders=([^,]+)/.exec(header(one, 'authorization'))[1].split(';');
      equal(signed.filter((name) => !/^(host|if-match|if-none-match|x-amz-.+)$/.test(name)), []);
      // On a busy machine one may be given up and tried again, which then finds its own write.
      ok([200, 304, 412, null].includes(one.status), `${one.method} ${one.status}`);
      if (one.method !== 'PUT') continue;
      ok(header(one, 'if-match') ?? header(one, 'if-none-match'), 'every write is conditional');
      if (one.status === 200) ok(one.bytes > 100 && header(one, 'content-length') === String(one.bytes), `${one.bytes} bytes`);
    }
  },

  async 'keys arrive as they are, however much of them has to be encoded'(context) {
    for (const [name, sent] of [
      ['a b+c~d.json', 'a%20b%2Bc~d.json'],
      ['ä/日本/🦀', '%C3%A4/%E6%97%A5%E6%9C%AC/%F0%9F%A6%80'],
      ["%2e%2e/!'()*", '%252e%252e/%21%27%28%29%2A'],
      ['...', '...'],
      ['a?b#c&d=e', 'a%3Fb%23c%26d%3De'],
    ]) {
      const folder = freshKey('keys');
      const { lane, elector } = await behind(context, `${folder}/${name}`, { probe: false });
      await elector.init();
      ok((await elector.lead((term) => term.token)) > 0);
      equal([...new Set((await lane.seen()).map(({ url }) => url))], [`/${context.bucket}/${folder}/${sent}`]);
    }
  },

  async 'an unchanged record is answered with 304 and followed on'(context) {
    const lockfilePath = await newGroup(context, '304');
    const leader = member(context, lockfilePath, { serverId: 'a', frequentInterval: 600 });
    const { lane, elector: follower } = await behind(context, lockfilePath, { serverId: 'b', frequentInterval: 100 });
    await withMembers([leader], async () => {
      await leader.waitForLeadership();
      await withMembers([follower], async () => {
        const one = await until(async () => (await lane.seen()).find(({ status }) => status === 304));
        ok(header(one, 'if-none-match'));
        equal([follower.leaderId(), follower.status().error], ['a', null]);
      });
    });
    const { elector: odd } = await behind(context, lockfilePath, { rules: [{ status: 304 }] });
    const { message } = await caught(() => odd.init());
    ok(/answered 304: nothing was asked/.test(message), message);
  },

  async 'a store that hangs, before or within its answer, is given up in time and hung up on'(context) {
    await Promise.all(['hang', 'hangBody'].map(async (fault) => {
      const patient = { leaderTimeout: 15_000, requestTimeout: 2_000, probe: false };
      const { lane, elector } = await behind(context, freshKey('hang'), { rules: [{ fault }], ...patient });
      await withMembers([elector], async () => {
        const error = await until(() => elector.status().error);
        ok(/no answer within 2000 ms/.test(error), error);
        const { closedMs } = await hungUpOn(lane);
        // The rig's clock starts when it hears the request, which a busy machine delays.
        ok(closedMs >= 400 && closedMs < 10_000, `${fault}: hung up after ${closedMs} ms`);
      });
    }));
  },

  async 'a body larger than any record is not read to its end'(context) {
    const { lane, elector } = await behind(context, freshKey('flood'), { rules: [{ fault: 'flood' }], probe: false });
    await withMembers([elector], async () => {
      const error = await until(() => elector.status().error);
      ok(/lease object|no answer within/.test(error), error);
      await hungUpOn(lane);
      ok(!elector.isLeader());
    });
  },

  async 'answers that somebody zipped on the way change nothing'(context) {
    const { elector } = await behind(context, await newGroup(context, 'gzip'), { rules: [{ fault: 'gzip' }] });
    const first = await elector.lead((term) => term.token);
    ok((await elector.lead((term) => term.token)) > first);
  },

  async 'a connection that is reset under a write is no loss: it is read back'(context) {
    const { lane, elector } = await behind(context, await newGroup(context, 'reset'));
    await withMembers([elector], async () => {
      const term = await elector.waitForLeadership();
      await lane.answer({ method: 'PUT', fault: 'reset', times: 1 });
      const writes = elector.status().requests.write;
      await until(() => elector.status().requests.write >= writes + 3);
      ok(!term.signal.aborted, elector.status().error ?? 'lost');
      // On Workers a reading at the instant for which a timer was set proves nothing.
      await until(() => elector.isLeader());
      equal((await elector.waitForLeadership()).token, term.token);
    });
  },
};

/** What every runner runs; `share` of `[part, parts]` is a part of it. */
export const main = ({ share: [part, parts] = [0, 1], ...context }, rejections) => {
  const all = Object.entries({ ...election, ...fetching, ...badInput });
  return runAll(all.filter((_test, index) => index % parts === part), context, rejections);
};
