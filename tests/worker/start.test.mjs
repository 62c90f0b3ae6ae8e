// On which Node these tests run, and what the Worker's isolate does while it starts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { inRoot } from '../../js/tools/paths.mjs';
import * as wasm from '../../build/worker/edgelect.js';

test('these tests run on Node 24', () => assert.equal(process.versions.node.split('.')[0], '24'));

/** What workerd has no use for, or refuses, outside of an event. */
const REFUSED = [[globalThis, 'fetch'], [globalThis, 'setTimeout'], [globalThis.crypto, 'getRandomValues'], [Date, 'now']];

test('an isolate that starts rehearses a slot, without a clock, a timer, randomness or a request', () => {
  wasm.initSync({ module: fs.readFileSync(inRoot('build/worker/edgelect_bg.wasm')) });
  const own = REFUSED.map(([object, name]) => Object.getOwnPropertyDescriptor(object, name));
  const refuse = (name) => () => {
    throw new Error(`${name} is called`);
  };
  for (const [object, name] of REFUSED) Object.defineProperty(object, name, { configurable: true, value: refuse(name) });
  try {
    assert.equal(wasm.rehearse(), true);
  } finally {
    REFUSED.forEach(([object, name], index) => {
      if (own[index]) Object.defineProperty(object, name, own[index]);
      else delete object[name];
    });
  }
});
