// The Worker, whose `env` a question may change: `x-env` has what is set instead, `null` for nothing, `{ bound }` for a binding.
import worker from '../../js/worker.js';

const changed = (env, changes) => {
  const own = { ...env };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete own[name];
    else own[name] = value.bound ? env[value.bound] : value;
  }
  return own;
};

export default {
  fetch: (request, env, ctx) => worker.fetch(request, changed(env, JSON.parse(request.headers.get('x-env') ?? '{}')), ctx),
};
