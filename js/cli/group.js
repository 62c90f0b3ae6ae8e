// Process groups.
import fs from 'node:fs';

/** The variable by which the processes of a command are known, also those that have left its group. */
export const MARK = '_EDGELECT_RUN';

/** After how many looks in a row that have found nothing there is nothing: a process may begin another one and end meanwhile. */
export const QUIET = 2;

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

/** Where `stat` has how many threads there are, when it started, how much memory it has, and where its program begins there; counted from
 * the state on. */
const THREADS_AT = 17;
const STARTED_AT = 19;
const MEMORY_AT = 20;
const PROGRAM_AT = 23;

/** The numbers of all processes, none where there is no /proc; undefined where it can't be read now. */
const processes = () => {
  try {
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch ({ code }) {
    return code === 'ENOENT' ? [] : undefined;
  }
};

/** What `stat` says of a process, from its state on. */
const statOf = (id) =>
  // The name of the program, in brackets, may contain anything: `7 (sh) S 1 7 7 …`.
  fs.readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1).split(' ');

const runs = (group) => {
  const ids = processes() ?? [];
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

/** When this process started, as `stat` counts it; 0 where nobody can say. */
export const startedAt = () => {
  try {
    return Number(statOf('self')[STARTED_AT]);
  } catch {
    return 0;
  }
};

/** As long as Linux lets an environment be, in bytes (`execve(2)`). */
const MOST_VARIABLES = 6 * 1024 * 1024;
let room;

/** The environment of a process. It is empty where it has none, or has ended, and while Linux begins another program in it. */
const variablesOf = (id) => {
  let file;
  try {
    file = fs.openSync(`/proc/${id}/environ`);
    // By one read: where the process begins another program meanwhile, the next would say that there is no more of them.
    room ??= Buffer.alloc(MOST_VARIABLES);
    return room.toString('utf8', 0, fs.readSync(file, room, 0, MOST_VARIABLES, null));
  } catch (error) {
    // Of a process whose first thread has ended.
    if (error.code === 'ESRCH') return '';
    throw error;
  } finally {
    if (file !== undefined) fs.closeSync(file);
  }
};

/** Whether a process has this mark; undefined where it may have. */
const isMarked = (id, mark, since) => {
  const has = (variables) => variables.split('\0').includes(`${MARK}=${mark}`);
  const variables = variablesOf(id);
  if (variables !== '') return has(variables);
  const fields = statOf(id).map(Number);
  if (fields[THREADS_AT] > 1) return fs.readdirSync(`/proc/${id}/task`).some((thread) => has(variablesOf(`${id}/task/${thread}`)));
  // A kernel's own, or one that has ended.
  if (fields[MEMORY_AT] === 0) return false;
  const isBetweenPrograms = fields[PROGRAM_AT] === 0 && fields[STARTED_AT] >= since;
  // A kernel that shows no program of any process, as those of sandboxes, is taken at its word.
  if (isBetweenPrograms && Number(statOf('self')[PROGRAM_AT]) > 0) return undefined;
  return has(variablesOf(id));
};

/** What runs and has this mark in its environment, where /proc shows that: `ids`. And whether that is all: `isClear` where each process
 * that goes on could be asked, and `isWhole` where none has ended meanwhile, which may have begun another one before. What started
 * before `since` is not meant. */
export const marked = (mark, since = 0) => {
  const ids = [];
  const listed = process.platform === 'linux' ? processes() : [];
  let [isClear, isWhole] = [listed !== undefined, true];
  for (const id of listed ?? []) {
    try {
      const is = isMarked(id, mark, since);
      if (is) ids.push(id);
      else if (is === undefined) isClear = false;
    } catch ({ code }) {
      if (code === 'ENOENT' || code === 'ESRCH') isWhole = false;
      else if (!GONE.includes(code)) isClear = false;
    }
  }
  return { ids, isClear, isWhole };
};

/** Sends a signal to all that has this mark, but for those of this group, which have had it; gives what `marked` says. */
export const signalMarked = (mark, signal, group) => {
  const found = marked(mark);
  for (const id of found.ids) {
    try {
      if (Number(statOf(id)[2]) !== group) process.kill(Number(id), signal);
    } catch {
      // It has ended in between.
    }
  }
  return found;
};
