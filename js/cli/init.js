// `edgelect init`: starts a new group, whose first member then leads at once.
import { EXIT, commandOf } from './command.js';
import { codeOf, electorOptions } from './store.js';

const EXISTS = 3;

export const init = () => commandOf('init').action(async (options) => {
  process.exitCode = EXIT.failed;
  process.exitCode = await start(options);
});

async function start(flags) {
  const { Elector } = await import('edgelect');
  try {
    if (!flags.lockfilePath && !process.env.EDGELECT_LOCKFILE_PATH) {
      console.error('edgelect: --lockfile-path = (not set): name the group, by this flag or by EDGELECT_LOCKFILE_PATH.');
      return EXIT.settings;
    }
    const elector = new Elector(await electorOptions(flags));
    await elector.init();
    console.log(`The group ${elector.config.lockfilePath} is started: its first member leads at once.`);
    return EXIT.done;
  } catch (error) {
    const code = codeOf(error, 'init');
    return error.code === 'EDGELECT_EXISTS' ? EXISTS : code;
  }
}
