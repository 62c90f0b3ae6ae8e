// The examples as somebody would run them: each in a folder of its own, on the packed package, all at the same time.
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from '../../js/tools/paths.mjs';
import { withPacked } from '../../js/tools/pack.mjs';
import { step } from '../../js/tools/run.mjs';
import { jsWorker } from './js-worker.mjs';
import { minuteCron } from './minute-cron.mjs';
import { nodeTimer } from './node-timer.mjs';
import { peers } from './peers.mjs';
import { heldCommands, heldRust, heldSnippets } from './snippets.mjs';
import { starters } from './starters.mjs';

/** Runs everything against a store; the first failure is thrown when all have ended. */
export async function examples(store) {
  heldSnippets();
  heldCommands();
  heldRust();
  await withPacked(async (packed) => {
    // Deno takes the package from the registry: it must not find it beside itself.
    copy('deno-cron', packed.folder);
    for (const name of ['js-worker', 'bun-cron', 'node-timer', 'peers']) copy(name, packed.users);
    const place = { ...packed, store };
    const checks = [...nodeTimer(place), ...minuteCron(place), ...jsWorker(place), ...peers(place), ...starters(place)];
    const checked = async ([what, check]) => {
      const error = await Promise.resolve().then(check).then(() => undefined, (thrown) => thrown);
      console.log(`${error ? 'not ok' : 'ok'}  ${what}`);
      return error;
    };
    const errors = await step('The examples, over a real minute', () => Promise.all(checks.map(checked)));
    const error = errors.find(Boolean);
    if (error) throw error;
  });
}

/** Without what somebody has installed in there. */
const copy = (name, to) => {
  const filter = (file) => !/node_modules$|\.wrangler$/.test(file);
  fs.cpSync(inRoot('examples', name), path.join(to, name), { recursive: true, filter });
};
