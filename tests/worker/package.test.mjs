// What the npm package is only in workerd. That it leads there is held by tests/runtimes, the README's Worker and examples/js-worker.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { bundleIn, startWorkerd } from '../../js/tools/miniflare.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { bundled } from '../../js/tools/workerd.mjs';
import { atEnd } from '../js/ending.mjs';

/** What a Worker answers that has this text, and these options of Miniflare's. */
const answerOf = async (text, more) => {
  const folder = newFolder('worker');
  fs.writeFileSync(`${folder}/entry.js`, text);
  const worker = startWorkerd({ ...bundleIn(await bundled(`${folder}/entry.js`, folder)), ...more });
  atEnd(() => worker.dispose());
  return (await worker.dispatchFetch('http://worker/')).json();
};

for (const flags of [[], ['no_global_navigator']]) {
  test(`c41 js/entry/workerd.js knows that it is on Workers, which have one clock, with the flags [${flags}]`, async () => {
    const text = `import '${inRoot('js/entry/workerd.js')}';
      import { Host } from '${inRoot('js/host.js')}';
      export default { fetch: () => Response.json({ singleClock: new Host().singleClock, named: 'navigator' in globalThis }) };`;
    assert.deepEqual(await answerOf(text, { compatibilityFlags: flags }), { singleClock: true, named: flags.length === 0 });
  });
}

test('an elector is made in the global scope; what Workers accept and ignore is refused, in a process that looks like Node\'s', async () => {
  const text = `import { Elector, MemoryStorage } from '${inRoot('js/entry/workerd.js')}';
    const group = { storage: new MemoryStorage(), lockfilePath: 'a' };
    // Where Workers have neither randomness nor a clock.
    const made = new Elector(group);
    const fieldOf = (call) => { try { call(); } catch ({ field }) { return field; } };
    export default { fetch: () => Response.json([
      typeof process.getBuiltinModule, made.status().role,
      fieldOf(() => new Elector({ ...group, peerTls: { ca: '-----BEGIN CERTIFICATE-----' } })), fieldOf(() => made.stopOnSignals()),
    ]) };`;
  assert.deepEqual(await answerOf(text), ['function', 'stopped', 'peerTls', 'signals']);
});
