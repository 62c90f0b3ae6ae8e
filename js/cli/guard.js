// Kills the process group of a command when its authority is over, or when the process that renews it is gone, stopped or
// blocked. A process of its own: nothing else can do this after a SIGKILL.
import process from 'node:process';
import { killGroup, nowMs } from './group.js';

// Whoever ends all programs called node by their name is to miss it.
process.title = 'edgelect-guard';

let group;
let timer;

const kill = () => group !== undefined && killGroup(group, 'SIGKILL');

process.on('message', (told) => {
  ({ group } = told);
  clearTimeout(timer);
  timer = group === undefined ? undefined : setTimeout(kill, Math.max(told.untilMs - nowMs(), 0));
});
process.on('disconnect', () => {
  kill();
  process.exit();
});
// A signal for every process of a terminal or a service is no reason to leave the command alone.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => {});
process.send('ready');
