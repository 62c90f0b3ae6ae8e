import { Elector, MemoryStorage } from 'edgelect';
process.on('unhandledRejection', (e) => { console.log('UNHANDLED', e); process.exitCode = 1; });
let seed = Number(process.argv[2] ?? 1);
const rnd = (n) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n; };
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
let bad = 0;
const kinds = {};
await Promise.all(Array.from({ length: 150 }, async (_, run) => {
  const memory = new MemoryStorage();
  const mode = rnd(5);
  const wrap = (f) => async (key, ...rest) => {
    if (key !== 'k' || mode === 4) {
      if (mode === 1) await sleep(rnd(60));
      if (mode === 2) await new Promise(() => {});
      if (mode === 3 && rnd(3) === 0) throw new Error('lost');
      if (mode === 4 && rnd(4) === 0) throw new Error('lost');
    }
    return f(key, ...rest);
  };
  const storage = { get: wrap((k) => memory.get(k)), putIfMatch: wrap((k, b, e) => memory.putIfMatch(k, b, e)) };
  const elector = new Elector({ storage, lockfilePath: 'k', probe: true, leaderTimeout: 1000, frequentInterval: 100, requestTimeout: 100, retryDelays: [10, 20], storeSkew: 0, unref: rnd(2) === 1 });
  const pending = [];
  const log = [];
  for (let i = 0; i < 8; i += 1) {
    const what = rnd(8);
    const go = (name, p) => { log.push(name); pending.push([name, p.then(() => `${name} ok`, (e) => `${name} ${e.code ?? e.name}`)]); };
    if (what === 0) go('start', elector.start());
    if (what === 1) go('stop', elector.stop({ release: rnd(2) === 0 }));
    if (what === 2) go('lead', elector.lead(async () => sleep(rnd(50))));
    if (what === 3) { const c = new AbortController(); go('leadAbort', elector.lead(async () => sleep(rnd(50)), { signal: c.signal })); setTimeout(() => c.abort(), rnd(80)); }
    if (what === 4) go('resign', elector.resign());
    if (what === 5) { try { elector.updateConfig({ frequentInterval: 100 + rnd(50) }); } catch (e) { log.push(`conf ${e.message}`); } }
    if (what === 6) go('doctor', elector.doctor({ races: 1, signal: AbortSignal.timeout(200) }));
    if (what === 7) { const c = new AbortController(); go('startAbort', elector.start({ signal: c.signal })); setTimeout(() => c.abort(), rnd(80)); }
    await sleep(rnd(60));
  }
  const keep = setTimeout(() => {}, 20000);
  await sleep(1500);
  const last = elector.stop();
  const all = await Promise.race([Promise.all([...pending.map(([, p]) => p), last.then(() => 'end')]), sleep(8000).then(() => null)]);
  if (!all) { bad += 1; console.log('STUCK', mode, log.join(' '), elector.status().role, JSON.stringify(elector.status().error)); }
  else for (const one of all) kinds[one] = (kinds[one] ?? 0) + 1;
  clearTimeout(keep);
}));
console.log({ bad }, kinds);
