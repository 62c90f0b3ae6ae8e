// Kills the process group of a command when its authority is over, or when the process that renews it is gone, stopped or
// blocked. A process of its own: nothing else can do this after a SIGKILL.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { QUIET, killGroup, nowMs, signalMarked } from './group.js';

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

/** Kills until nothing is left of what it was told of, or it is told of something else. */
const killAll = async () => {
  const command = told;
  // One that was just being started may have no mark yet.
  let found = command.group !== undefined;
  if (found) killGroup(command.group, 'SIGKILL');
  for (let left = PASSES, quiet = 0; told === command && left > 0 && quiet < QUIET; left -= 1) {
    const { ids, isClear, isWhole } = signalMarked(mark, 'SIGKILL');
    found ||= ids.length > 0;
    quiet = found && ids.length === 0 && isClear && isWhole ? quiet + 1 : 0;
    await sleep(PAUSE_MS);
  }
};

const look = () => {
  const leftMs = Math.min(told.untilMs - nowMs(), told.untilWallMs - Date.now());
  if (leftMs <= 0) killAll();
  else timer = setTimeout(look, Math.min(leftMs, LOOK_MS));
};

process.on('message', (message) => {
  told = message;
  clearTimeout(timer);
  if (told.untilMs !== undefined) timer = setTimeout(look, 0);
});
process.on('disconnect', async () => {
  if (told.untilMs !== undefined) await killAll();
  process.exit();
});
// A signal for every process of a terminal or a service is no reason to leave the command alone.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => {});
process.send('ready');
