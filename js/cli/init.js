// `edgelect init`: starts a new group, whose first member then leads at once.
import { EXIT, commandOf } from './command.js';
import { codeOf, namedOptions } from './store.js';

const EXISTS = 3;

export const init = () => commandOf('init').action(async (options) => {
  process.exitCode = EXIT.failed;
  process.exitCode = await start(options);
});

async function start(flags) {
  const { Elector } = await import('edgelect');
  try {
    const elector = new Elector(await namedOptions(flags));
    await elector.init();
    console.log(`The group ${elector.config.lockfilePath} is started: its first member leads at once.`);
    return EXIT.done;
  } catch (error) {
    const code = codeOf(error, 'init');
    return error.code === 'EDGELECT_EXISTS' ? EXISTS : code;
  }
}
