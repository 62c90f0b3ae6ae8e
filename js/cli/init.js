// `edgelect init`: starts a new group, whose first member then leads at once.
import { PlainCommand } from './command.js';
import { STORE_HELP, electorOptions, withStore } from './store.js';

const EXIT_CODES = { done: 0, failed: 1, settings: 2, exists: 3 };

export const init = () => withStore(new PlainCommand('init').description('start a new group, so that its first member leads at once'))
  .addHelpText('after', `
It creates the lease object, released. Without it the first member of a group
waits for one lease before it leads, and the first slot of a scheduled job is
left out.

Run it once for each group, by hand: it is your word that no member of the group
has run within the last lease. Never put it into a start script: after somebody
has deleted the lease object, it would let two members lead at once.
${STORE_HELP}

Exit code: 0 the group is started; 1 the store failed, and nobody knows whether
the object was made; 2 the settings are wrong; 3 the group was started before,
and nothing was changed.

Examples:
  npx edgelect init --bucket jobs --region eu-central-1 --lockfile-path leader/report.json
  npx edgelect init --store dynamodb --table coordination-table --region eu-central-1 --lockfile-path batch-processor`)
  .action(async (options) => {
    process.exitCode = EXIT_CODES.failed;
    process.exitCode = await start(options);
  });

async function start(flags) {
  const { Elector } = await import('edgelect');
  try {
    if (!flags.lockfilePath && !process.env.EDGELECT_LOCKFILE_PATH) {
      console.error('edgelect: --lockfile-path = (not set): name the group, by this flag or by EDGELECT_LOCKFILE_PATH.');
      return EXIT_CODES.settings;
    }
    const elector = new Elector(await electorOptions(flags));
    await elector.init();
    console.log(`The group ${elector.config.lockfilePath} is started: its first member leads at once.`);
    return EXIT_CODES.done;
  } catch (error) {
    const what = { EDGELECT_CONFIG: 'settings', EDGELECT_EXISTS: 'exists' }[error.code] ?? 'failed';
    const more = what === 'settings' ? '\nSet it by a flag or a variable: edgelect init --help.' : '';
    console.error(`edgelect: ${error.message}${more}`);
    return EXIT_CODES[what];
  }
}
