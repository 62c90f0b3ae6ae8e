// What goes wrong when, drawn from a seed: each list has every kind once before any comes again.
import { createHash } from 'node:crypto';
import { FAULTS } from './proxy.mjs';

const NETWORK = Object.keys(FAULTS);
const PROCESSES = ['kill', 'stop'];
const VICTIMS = ['leader', 'leader', 'some', 'everyone'];

/** Numbers from 0 to 1 of one stream of a seed, the same in each run. */
export function chance(seed, stream) {
  let count = 0;
  return () => {
    count += 1;
    return createHash('sha256').update(`${seed} ${stream} ${count}`).digest().readUInt32BE() / 2 ** 32;
  };
}

/** Phases of the network without an end: `{ kind, victims, share, calmMs, lastsMs }`. */
export function* networkPhases(seed, leaseMs) {
  const draw = chance(seed, 'network');
  for (;;) {
    for (const kind of shuffled(NETWORK, draw)) {
      const victims = VICTIMS[Math.floor(draw() * VICTIMS.length)];
      yield { kind, victims, share: draw(), calmMs: between(0.5, 1, draw) * leaseMs, lastsMs: between(0.7, 2, draw) * leaseMs };
    }
  }
}

/** What is done to the process that leads, without an end: `{ kind, calmMs, lastsMs }`. */
export function* processPhases(seed, leaseMs) {
  const draw = chance(seed, 'processes');
  for (;;) {
    for (const kind of shuffled(PROCESSES, draw)) {
      yield { kind, calmMs: between(0.6, 1.2, draw) * leaseMs, lastsMs: between(1.3, 2.2, draw) * leaseMs };
    }
  }
}

const between = (least, most, draw) => least + (most - least) * draw();

export function shuffled(all, draw) {
  return all.map((one) => [draw(), one]).sort(([one], [other]) => one - other).map(([, one]) => one);
}
