// Process groups.
import fs from 'node:fs';

/** The variable by which the processes of a command are known, also those that have left its group. */
export const MARK = '_EDGELECT_RUN';

/** Milliseconds of a clock that all processes of this machine share. */
export const nowMs = () => Number(process.hrtime.bigint() / 1_000_000n);

/** Milliseconds of that clock and of the wall clock. */
export const readings = () => [nowMs(), Date.now()];

/** Sends a signal to all processes of a group; false where there are none. `onDenied` hears if they run as another user. */
export const killGroup = (group, signal, onDenied) => {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const isDenied = error.code === 'EPERM';
    if (isDenied) onDenied?.();
    return isDenied;
  }
};

/** Whether a process of the group still runs. In a container without an init nobody collects dead ones, which count as none. */
export const isAlive = (group) => killGroup(group, 0) && (process.platform !== 'linux' || runs(group));

/** What `stat` of a process says that has ended, or that is hidden from this user. */
const GONE = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'];

/** Where `stat` has how many threads there are, counted from the state on. */
const THREADS_AT = 17;

const processes = () => {
  try {
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
};

/** What `stat` says of a process, from its state on. */
const statOf = (id) =>
  // The name of the program, in brackets, may contain anything: `7 (sh) S 1 7 7 …`.
  fs.readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1).split(' ');

const runs = (group) => {
  const ids = processes();
  // Without /proc nobody can say that all of them are dead.
  return ids.length === 0 || ids.some((id) => {
    try {
      const fields = statOf(id);
      // Its first thread may have ended while others go on.
      const isDead = ['Z', 'X'].includes(fields[0]) && Number(fields[THREADS_AT]) <= 1;
      return Number(fields[2]) === group && !isDead;
    } catch ({ code }) {
      return !GONE.includes(code);
    }
  });
};

/** What runs and has this mark in its environment, where /proc shows that. */
const marked = (mark) => processes().filter((id) => {
  try {
    return fs.readFileSync(`/proc/${id}/environ`, 'utf8').split('\0').includes(`${MARK}=${mark}`);
  } catch {
    return false;
  }
});

/** Whether anything with this mark runs. */
export const isMarkedAlive = (mark) => process.platform === 'linux' && marked(mark).length > 0;

/** Sends a signal to all that has this mark, but for those of this group, which have had it; whether there was any. */
export const signalMarked = (mark, signal, group) => {
  if (process.platform !== 'linux') return false;
  const ids = marked(mark);
  for (const id of ids) {
    try {
      if (Number(statOf(id)[2]) !== group) process.kill(Number(id), signal);
    } catch {
      // It has ended in between.
    }
  }
  return ids.length > 0;
};
