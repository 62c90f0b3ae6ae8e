// `npm start`: sets the machine up, builds what changed, and shows the main job.
// Loads the rest only after the set-up: before it there are no packages, and on an old Node there will be none.
import { exit, fail } from './run.mjs';
import { ensure } from './setup.mjs';

const HELP = `npm start             sets up, builds, and shows Node, Deno, Bun, native Rust and a Worker electing one leader; Ctrl-C ends it
npm start -- --once   the same, ending by itself: 0, or 1 where a rule was broken or a runtime never led`;

async function main(args) {
  const unknown = args.filter((arg) => !['--once', '--help', '-h'].includes(arg));
  if (unknown.length > 0) {
    console.error(`edgelect: there is no option ${unknown[0]}\n${HELP}`);
    return 1;
  }
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const { buildEach } = await import('./build.mjs');
  const { compileNative } = await import('../demo/fleet.mjs');
  const { startSeaweed } = await import('./seaweed.mjs');
  let later;
  // The demo begins as soon as its first members can run; compilers leave them the processor.
  await ensure(['bindgen', 'packages', 'seaweed'], () => {
    const built = buildEach(['npm', 'worker'], { patient: ['worker'] });
    later = { worker: built.worker, native: compileNative({ patient: true }), store: ensure(['seaweed']).then(() => startSeaweed()) };
    // A failure is told where it is waited for.
    for (const one of Object.values(later)) one.catch(() => {});
    return built.npm;
  });
  const { demo } = await import('../demo/demo.mjs');
  return demo({ once: args.includes('--once'), ...later });
}

main(process.argv.slice(2)).then(exit, fail);
