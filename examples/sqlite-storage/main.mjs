// Processes of one machine elect over a SQLite file.
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Elector } from 'edgelect';

const HELP = `node main.mjs [--file FILE] [--name NAME] [--lease MS]

Start it twice with one file (default edgelect.sqlite). One process leads; end it, or kill it, and the other one does.
It needs Node 22.13 or newer.`;

const OPTIONS = {
  file: { type: 'string', default: 'edgelect.sqlite' },
  name: { type: 'string', default: `process-${process.pid}` },
  lease: { type: 'string', default: '2000' },
  help: { type: 'boolean', default: false },
};

const main = async () => {
  const { file, name, lease, help } = parseArgs({ options: OPTIONS }).values;
  if (help) return console.log(HELP);
  // Only here: an older Node has no node:sqlite, and is told so.
  const { SqliteStorage } = await import('./sqlite-storage.mjs');
  const work = async (term) => {
    console.log(`${name} leads with token ${term.token}`);
    if (!term.signal.aborted) await once(term.signal, 'abort');
    console.log(`${name} has stopped its work`);
  };
  const storage = new SqliteStorage(file);
  const leaderTimeout = Number(lease);
  const elector = new Elector({ storage, lockfilePath: 'leader/example', serverId: name, leaderTimeout, follow: 'tight' });
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => ended.abort());
  const failed = (error) => {
    if (!ended.signal.aborted) console.log(`${name}: ${error.message}`);
  };
  while (!ended.signal.aborted) await elector.lead(work, { signal: ended.signal }).catch(failed);
  await elector.stop();
  storage.close();
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
