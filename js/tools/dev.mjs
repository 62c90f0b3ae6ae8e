// `npm run dev`: the Worker on this machine, with an R2 bucket of its own: no account, no network.
// Loads the rest only after the set-up: before it there are no packages, and on an old Node there will be none.
import { NODE_24, ROOT } from './paths.mjs';
import { exit, fail } from './run.mjs';
import { ensure } from './setup.mjs';

const linesFor = (port) => `Fire the cron:   curl 'http://127.0.0.1:${port}/__scheduled?cron=*+*+*+*+*' &    (a tick lasts a minute)
Ask the leader:  curl http://127.0.0.1:${port}/health/leadership    (a new group has none for its first 20 s or so)`;

const HELP = `npm run dev   sets up, builds, and runs the Worker on http://127.0.0.1:8787 with an R2 bucket of its own; Ctrl-C ends it
              options go to wrangler dev: npm run dev -- --port 8000

${linesFor(8787)}`;

async function main(args) {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  await ensure(['bindgen', 'packages'], async () => (await import('./build.mjs')).build(['worker']));
  const { QUIET_AND_OFFLINE, WRANGLER } = await import('./wrangler.mjs');
  const { endOf, spawnKept } = await import('./cleanup.mjs');
  console.log(linesFor(args.includes('--port') ? args[args.indexOf('--port') + 1] : 8787));
  const child = spawnKept(NODE_24, [WRANGLER, 'dev', '--test-scheduled', '--ip', '127.0.0.1', ...args], {
    cwd: ROOT, env: { ...process.env, ...QUIET_AND_OFFLINE }, stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await endOf(child);
  return Number.isInteger(code) ? code : 1;
}

main(process.argv.slice(2)).then(exit, fail);
