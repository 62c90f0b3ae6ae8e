// Kills the process group of a command when its authority is over, or when the process that renews it is gone, stopped or
// blocked. A process of its own: nothing else can do this after a SIGKILL.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { killGroup, nowMs, signalMarked } from './group.js';

// Whoever ends all programs called node by their name is to miss it.
process.title = 'edgelect-guard';

const [mark] = process.argv.slice(2);
const PASSES = 100;
const PAUSE_MS = 50;
/** No timer counts the time that the machine slept. */
const LOOK_MS = 250;

/** `{ untilMs, untilWallMs, group }`, without a group while the command is being started; nothing where none runs. */
let told = {};
let timer;

const kill = () => {
  if (told.group !== undefined) killGroup(told.group, 'SIGKILL');
  return signalMarked(mark, 'SIGKILL');
};

const look = () => {
  const leftMs = Math.min(told.untilMs - nowMs(), told.untilWallMs - Date.now());
  if (leftMs <= 0) kill();
  else timer = setTimeout(look, Math.min(leftMs, LOOK_MS));
};

process.on('message', (message) => {
  told = message;
  clearTimeout(timer);
  if (told.untilMs !== undefined) timer = setTimeout(look, 0);
});
process.on('disconnect', async () => {
  // A command that was just being started may have no mark yet, and one that runs may have started another process.
  let found = told.group !== undefined;
  for (let left = PASSES; told.untilMs !== undefined && left > 0; left -= 1) {
    if (kill()) found = true;
    else if (found) break;
    await sleep(PAUSE_MS);
  }
  process.exit();
});
// A signal for every process of a terminal or a service is no reason to leave the command alone.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => {});
process.send('ready');
