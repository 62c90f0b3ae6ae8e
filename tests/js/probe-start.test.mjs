// Stops that come at an awkward moment: in any turn of a probe, and with two wishes at once.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MemoryStorage } from 'edgelect';
import { KEY, member, newGroup, stopAll, within } from './group.mjs';

after(stopAll);

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** What is asked of a storage after a stop that comes `turns` microtasks after the call of this number. */
const askedAfterStop = async (call, turns, stopping) => {
  const storage = new MemoryStorage();
  let calls = 0;
  let late = 0;
  let isStopped = false;
  const asked = () => {
    calls += 1;
    if (isStopped) late += 1;
    if (calls !== call) return;
    let later = Promise.resolve();
    for (let index = 0; index < turns; index += 1) later = later.then(() => {});
    void later.then(() => {
      void elector.stop(stopping);
      isStopped = true;
    });
  };
  const watched = {
    get: (...all) => asked() ?? storage.get(...all),
    putIfMatch: (...all) => asked() ?? storage.putIfMatch(...all),
  };
  const elector = member(watched, { probe: true });
  await elector.start();
  for (let index = 0; index < 4; index += 1) await turn();
  await within(elector.stop());
  return late;
};

for (const stopping of [{}, { release: false }]) {
  test(`c26 a stop ends the probe in whatever turn it comes (${JSON.stringify(stopping)})`, async () => {
    for (let call = 1; call <= 16; call += 1) {
      for (let turns = 0; turns <= 24; turns += 1) {
        assert.equal(await askedAfterStop(call, turns, stopping), 0, `call ${call}, ${turns} microtasks later`);
      }
    }
  });
}

test('a stop that is to write nothing does not park either', async () => {
  const storage = await newGroup();
  const elector = member(storage);
  await elector.start();
  await within(elector.waitForLeadership());
  const { etag } = storage.get(KEY);
  await within(elector.stop({ park: true, release: false }));
  assert.equal(storage.get(KEY).etag, etag);
});
