// A Node member of a run of slots: runs what it is triggered for on stdin, and reports each trigger on stdout, in JSON lines.
import { Elector } from 'edgelect';
import { isUp, obey, report } from './speak.mjs';

/** Between the term and the call, as work that takes its time: a member that is stopped here calls with an old token. */
const THINK_MS = 100;
const { env } = process;
const number = (name) => Number(env[`EDGELECT_${name}`]);

// One for all triggers, which overlap in it, with the settings and the store of its variables.
const elector = new Elector();

class Answered extends Error {
  constructor(status) {
    super(`the job answered ${status}`);
    this.status = status;
  }
}

/** Calls the endpoint as the Worker does, and looks at no signal: the token is what protects. */
async function job({ token, slot }) {
  report('look', { slot, token });
  await new Promise((resolve) => setTimeout(resolve, THINK_MS));
  const answer = await fetch(env.EDGELECT_JOB_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'edgelect-token': String(token) },
    body: JSON.stringify({ group: env.EDGELECT_LOCKFILE_PATH, slot, term: token, serverId: env.EDGELECT_SERVER_ID }),
    signal: AbortSignal.timeout(number('JOB_TIMEOUT')),
  });
  await answer.body?.cancel();
  if (!answer.ok) throw new Answered(answer.status);
  return answer.status;
}

async function run({ id, slot }) {
  const options = {
    policy: env.EDGELECT_POLICY, missed: env.EDGELECT_MISSED, period: number('PERIOD'), attempts: number('ATTEMPTS'), budget: number('BUDGET'),
  };
  try {
    const { outcome, reason, runs } = await elector.runScheduled(slot, job, options);
    const told = runs.map(({ value, error, ...run }) => ({ ...run, status: value ?? error?.status }));
    report('report', { id, slot, outcome, reason, runs: told });
  } catch (error) {
    report('report', { id, slot, outcome: 'error', reason: `${error.code}: ${error.message}`, runs: [] });
  }
}

isUp();
obey((line) => void run(JSON.parse(line)));
