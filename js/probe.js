// One probe of a store, as `Elector.doctor` runs it; its steps are in src/probe.rs.

/** Resolves to the diagnosis. `open(onEvent)` gives the engine; `onBegin` hears the name of each step before it, `onStep` the
 * step after it, and what they throw or reject with ends the probe, which deletes its object first. A signal ends it at once,
 * which may leave the object. */
export const diagnose = (open, order, { onBegin, onStep, signal }) =>
  new Promise((resolve, reject) => {
    let diagnosis;
    let thrown;
    /** What they have promised; it settles before the diagnosis does. */
    const promised = [];
    /** Called once something has failed: then nothing else is waited for. */
    let onFailure;
    const failed = new Promise((resolve) => {
      onFailure = resolve;
    });
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
        const told = hear(what);
        promised.push((async () => told)().catch(fail));
      } catch (error) {
        fail(error);
      }
    };
    const fail = (error) => {
      thrown ??= { error };
      onFailure();
      engine.stop(false);
    };
    const finish = async (error) => {
      await Promise.race([Promise.all(promised), failed]);
      if (thrown) end(reject, thrown.error);
      else if (error) end(reject, error);
      else end(resolve, diagnosis);
    };
    const engine = open(({ type, error, step, ...told }) => {
      if (type === 'begins') tell(onBegin, step);
      else if (type === 'step') tell(onStep, Object.freeze(step));
      else if (type === 'probed') diagnosis = { ...told, steps: told.steps.map(Object.freeze) };
      else void finish(error);
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      engine.probe(order);
    } catch (error) {
      end(reject, error);
    }
  });
