// The Worker with a binding of one group's that throws at the first look, as nothing of ours does.
import worker from '../../js/worker.js';

const broken = { get head() { throw new Error('a broken binding'); } };

export default {
  ...worker,
  scheduled: (event, env, ctx) => worker.scheduled(event, { ...env, EDGELECT_R2__REPORTS: broken }, ctx),
};
