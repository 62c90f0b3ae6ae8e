// A job that counts while its process leads, and keeps the count where no earlier leader can change it any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Elector } from 'edgelect';

const HELP = `node examples/checkpoint/main.mjs [options]

Start it twice, on one machine or on two. One of the processes leads: it opens the checkpoint, counts on from what is in
there, and prints a line for each write that the store accepted. End it, stop it (kill -STOP) or pull its plug: the other one
goes on, and the count never goes back.

  --key KEY      the checkpoint's object (default checkpoint/count.json)
  --every MS     a write so often (default 1000)
  --stop-before-write N
                 to see the fence at work: right before the bytes of the N-th write leave, after every look at the own
                 clock, the process stops itself as by kill -STOP. After kill -CONT they are sent, whatever the elector
                 says by then, and the store's answer is printed. Opening is the first write.
  --help         this text

The bucket and the group come from variables (docs/options.md):
  EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 EDGELECT_LOCKFILE_PATH=leader/count.json \\
  EDGELECT_ACCESS_KEY_ID=… EDGELECT_SECRET_ACCESS_KEY=… node examples/checkpoint/main.mjs`;

const say = (event, more) => console.log(JSON.stringify({ event, ...more }));

const wholeNumber = (name, text) => {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} = ${JSON.stringify(text)}: must be a whole number from 1 on`);
};

const read = () => {
  const { values } = parseArgs({
    options: {
      key: { type: 'string', default: 'checkpoint/count.json' },
      every: { type: 'string', default: '1000' },
      'stop-before-write': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { key, help, every, 'stop-before-write': before } = values;
  return { key, help, everyMs: wholeNumber('every', every), stopBefore: before && wholeNumber('stop-before-write', before) };
};

/** The moment that no look at a clock can cover: the process is stopped when the look is behind it. */
const stopBeforeWrite = (number, key) => {
  const { fetch } = globalThis;
  let writes = 0;
  globalThis.fetch = async (url, init) => {
    if (init.method !== 'PUT' || !String(url).endsWith(encodeURI(key))) return fetch(url, init);
    writes += 1;
    if (writes !== number) return fetch(url, init);
    say('stopping');
    process.kill(process.pid, 'SIGSTOP');
    // Without the elector's signal, which would end the request: it stands for bytes that are on their way already.
    const answer = await fetch(url, { ...init, signal: undefined });
    say('answered', { status: answer.status });
    return answer;
  };
};

const counting = (key, everyMs) => async (term) => {
  const state = await term.checkpoint(key);
  let count = state.value?.count ?? 0;
  say('opened', { term: state.token, count });
  while (!term.signal.aborted) {
    try {
      await state.write({ count: count + 1 });
      count += 1;
      say('written', { term: state.token, count });
    } catch (error) {
      say('refused', { term: state.token, count: count + 1, code: error.code, message: error.message });
      // Unknown: the next write finds out first. Anything else is the next term's to sort out.
      if (error.code !== 'EDGELECT_UNKNOWN') {
        term.resign();
        throw error;
      }
    }
    await sleep(everyMs, undefined, { signal: term.signal }).catch(() => {});
  }
  // Work that throws because its term is over runs again in the next one.
  throw term.signal.reason;
};

const main = async () => {
  const { key, everyMs, stopBefore, help } = read();
  if (help) return console.log(HELP);
  if (stopBefore) stopBeforeWrite(stopBefore, key);
  const elector = new Elector();
  elector.stopOnSignals();
  await elector.lead(counting(key, everyMs));
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
