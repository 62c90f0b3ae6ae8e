// The signals that a process is told to end by.
import { EdgelectError, textOf, wrongOption } from './errors.js';
import { hasSingleClock, setTimer } from './host.js';

/** Within what time two of one signal are one: npm passes on what a terminal has sent to all processes. */
const SAME_SIGNAL_MS = 500;

/** One listener of the process for each signal, by its name: whom it stops, and when it came last. */
const listeners = new Map();

/** Calls `stop` at the first of these signals; the next one ends the process, as it does by default. Returns what takes this back. */
export const onSignals = (signals, stop) => {
  if (!hearsSignals()) {
    const message = 'stopOnSignals needs the main thread of a process: here no signal ever comes; call stop() where one does';
    throw new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'signals' });
  }
  checkSignals(signals);
  const names = [...signals];
  const forget = () => {
    for (const name of names) leave(name, once);
  };
  const once = () => {
    forget();
    stop();
  };
  try {
    for (const name of names) listen(name, once);
  } catch (cause) {
    // One that no process can catch, such as SIGKILL, leaves no listener of the others.
    forget();
    throw wrongOption('signals', signals, `can't all be caught (${textOf(cause)})`);
  }
  return forget;
};

const listen = (name, stop) => {
  let of = listeners.get(name);
  if (!of) {
    of = { stops: new Set(), cameMs: -Infinity, hear: () => hear(name) };
  }
  // Somebody may have removed all listeners of the process.
  if (!globalThis.process.listeners(name).includes(of.hear)) globalThis.process.on(name, of.hear);
  listeners.set(name, of);
  of.stops.add(stop);
};

const leave = (name, stop) => {
  const of = listeners.get(name);
  of?.stops.delete(stop);
  // Until then its twin may come, which is for nobody.
  if (of && performance.now() - of.cameMs >= SAME_SIGNAL_MS) end(name, of);
};

/** Ends the listening, unless somebody is to hear. */
const end = (name, of) => {
  if (of.stops.size > 0 || listeners.get(name) !== of) return;
  globalThis.process.removeListener(name, of.hear);
  listeners.delete(name);
};

const hear = (name) => {
  const of = listeners.get(name);
  // Another listener of this very signal may have taken it back.
  if (!of) return;
  const nowMs = performance.now();
  if (nowMs - of.cameMs < SAME_SIGNAL_MS) return;
  of.cameMs = nowMs;
  const stops = [...of.stops];
  setTimer(SAME_SIGNAL_MS, () => end(name, of), true);
  for (const stop of stops) stop();
  if (stops.length > 0) return;
  // The timer that ends the listening is late, because something keeps the thread busy.
  end(name, of);
  const { process } = globalThis;
  if (process.listenerCount(name) === 0) process.kill(process.pid, name);
};

/** Whether `process.on` hears signals: Workers and the threads of Node and Bun have it and hear none; Deno's threads do. */
const hearsSignals = () => {
  const { Deno, process } = globalThis;
  if (typeof process?.on !== 'function' || hasSingleClock()) return false;
  return Deno !== undefined || process.getBuiltinModule?.('node:worker_threads')?.isMainThread !== false;
};

/** Refuses a list of signals of which one could never come: a listener for it would wait in silence. */
const checkSignals = (signals) => {
  const isSignal = (name) => typeof name === 'string' && /^SIG[A-Z0-9]+$/.test(name);
  if (!Array.isArray(signals) || signals.length === 0 || ![...signals].every(isSignal)) {
    throw wrongOption('signals', signals, 'must be a list of names such as SIGTERM');
  }
  const known = globalThis.process.getBuiltinModule?.('node:os')?.constants?.signals;
  // A runtime that does not even name this one tells nothing.
  const unknown = known?.SIGTERM === undefined ? undefined : signals.find((name) => known[name] === undefined);
  if (unknown === undefined) return;
  throw new EdgelectError(`signals = ${unknown.slice(0, 60)}: there is no such signal here`, { code: 'EDGELECT_CONFIG', field: 'signals' });
};
