// One probe of a store, as `Elector.doctor` runs it; its steps are in src/probe.rs.

/** Resolves to the diagnosis. `open(onEvent)` gives the engine; `onBegin` hears the name of each step before it, `onStep` the
 * step after it, and what they throw ends the probe, which deletes its object first. A signal ends it at once, which may
 * leave the object. */
export const diagnose = (open, order, { onBegin, onStep, signal }) =>
  new Promise((resolve, reject) => {
    let diagnosis;
    let thrown;
    const end = (settle, value) => {
      signal?.removeEventListener('abort', onAbort);
      engine.close();
      settle(value);
    };
    const onAbort = () => end(reject, signal.reason);
    const tell = (hear, what) => {
      // Steps that needed no request come together.
      if (thrown) return;
      try {
        hear(what);
      } catch (error) {
        thrown = { error };
        engine.stop(false);
      }
    };
    const engine = open(({ type, error, step, ...told }) => {
      if (type === 'begins') tell(onBegin, step);
      else if (type === 'step') tell(onStep, Object.freeze(step));
      else if (type === 'probed') diagnosis = { ...told, steps: told.steps.map(Object.freeze) };
      else if (thrown) end(reject, thrown.error);
      else if (error) end(reject, error);
      else end(resolve, diagnosis);
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      engine.probe(order);
    } catch (error) {
      end(reject, error);
    }
  });
