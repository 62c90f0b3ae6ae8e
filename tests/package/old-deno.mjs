// What Deno was before 2.8: its timers are numbers, and Deno.unrefTimer takes them.
const { setTimeout, clearTimeout } = globalThis;
const timers = [];
globalThis.setTimeout = (...all) => timers.push(setTimeout(...all));
globalThis.clearTimeout = (number) => clearTimeout(timers[number - 1]);
Deno.unrefTimer = (number) => timers[number - 1].unref();

await import('./stay.mjs');
