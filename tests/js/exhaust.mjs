/** Asks an elector at every depth from the end of the stack upwards until it has stopped. The stack ends inside the wasm
 * at one of them; a single descent may end a frame earlier, where nothing is broken. */
export const exhaustUnder = (elector) => {
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
