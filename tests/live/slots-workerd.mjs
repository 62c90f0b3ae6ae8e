// The deployed Worker in workerd, as `slots-workerd.mjs FOLDER` with its bundle there: each line on stdin is a cron trigger, what
// its log says of one is reported on stdout, as js/worker.js cannot.
import { bundleIn, fireCron, startWorkerd } from '../../js/tools/miniflare.mjs';
import { isUp, obey, ownVariables, report } from './speak.mjs';

const RUN = /run="(\d+) term (\d+) (.*?) (\d+) ms( \(not recorded\))?"/g;
/** Triggers without a report. The log does not name them, and those for one slot are alike. */
const waiting = [];

function onLog(message) {
  const { outcome, slot } = /outcome=(?<outcome>\w+)(?:.*? slot=(?<slot>\d+))?/.exec(message)?.groups ?? {};
  const index = waiting.findIndex((one) => slot !== undefined && one.slot === Number(slot));
  if (index === -1) return console.error(message);
  const [{ id }] = waiting.splice(index, 1);
  const runs = [...message.matchAll(RUN)].map(([, ran, term, word, tookMs, not]) => ({
    slot: Number(ran), term: Number(term), ...ended(word), durationMs: Number(tookMs), recorded: not === undefined,
  }));
  report('report', { id, slot: Number(slot), outcome, reason: message, runs });
}

function ended(word) {
  const [how, status] = word.split(' ');
  const outcome = { ok: 'done', failed: 'failed', 'unknown:': 'failed' }[how] ?? 'lost';
  return { outcome, status: /^\d+$/.test(status) ? Number(status) : undefined };
}

const workerd = startWorkerd({ ...bundleIn(process.argv[2]), bindings: ownVariables(), onLog });
await workerd.ready;
isUp();

obey(async (line) => {
  const trigger = JSON.parse(line);
  waiting.push(trigger);
  const outcome = await fireCron(workerd, new Date(trigger.slot));
  if (outcome !== 'ok') console.error(`the trigger ended with ${outcome}`);
});
