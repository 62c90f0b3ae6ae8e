// What happens, published on Node's diagnostics channels, for tracing and metrics that the application knows nothing of.
// Node 20.16 and 22.3 have `getBuiltinModule`; older ones, and runtimes without it, publish nothing.
const open = (name) => {
  try {
    return globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')?.channel(name);
  } catch {
    return undefined;
  }
};

const CHANNELS = {
  status: open('edgelect:status'),
  error: open('edgelect:error'),
  term: open('edgelect:term'),
  slot: open('edgelect:slot'),
};

/** Whether somebody listens to `edgelect:NAME`. */
export const isHeard = (name) => CHANNELS[name]?.hasSubscribers === true;

/** Publishes a message, which `make` gives only where somebody listens: at the next turn, in order, because a listener may call
 * the elector, which is in the middle of a step now. */
export const publish = (name, make) => {
  if (!isHeard(name)) return;
  const message = make();
  void Promise.resolve().then(() => CHANNELS[name].publish(message));
};
