// Alone in its process: once anything of the error path has run, the stack ends elsewhere and this proves nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leading, leads, until } from './group.mjs';

/** Asks an elector at every depth from the end of the stack upwards until it has stopped. The stack ends inside the wasm
 * at one of them; a single descent may end a frame earlier, where nothing is broken. */
const exhaustUnder = (elector) => {
  let stopped = false;
  const dive = () => {
    try {
      dive();
    } catch {
      // The bottom, or a frame too near to it.
    }
    if (!stopped) stopped = elector.status().role === 'stopped';
  };
  dive();
  return stopped;
};

test('a stack that the application exhausts in its first question ends every term in the instance, and start leads again', async () => {
  const diver = await leading();
  const bystander = await leading();
  assert.ok(exhaustUnder(diver.elector));
  for (const { elector, losses, term } of [diver, bystander]) {
    await until(() => elector.status().role === 'stopped' && losses.length > 0);
    assert.deepEqual(losses, [{ term: term.token, reason: 'trap' }]);
    assert.ok(term.signal.aborted);
    await elector.start();
    await leads(elector);
    await elector.stop();
  }
});
