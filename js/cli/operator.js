// `edgelect step-down`, `pause`, `resume`: what an operator asks of a group.
import os from 'node:os';
import { EXIT, commandOf } from './command.js';
import { name } from './status.js';
import { codeOf, jsonOf, namedOptions } from './store.js';

export const stepDown = () => commandOf('step-down')
  .action((flags) => run('step-down', flags, async (elector, words) => {
    const receipt = await elector.stepDown(words);
    return [receipt, `${name(receipt.leaderId)} is asked to end term ${receipt.term}: it does so at its next renewal.`];
  }));

export const pause = () => commandOf('pause')
  .action((flags) => run('pause', flags, async (elector, words) => {
    const until = flags.until ?? (flags.for === undefined ? undefined : new Date(Date.now() + flags.for));
    const receipt = await elector.pause({ ...words, until });
    const end = until ? `until ${until.toISOString()}` : 'until `edgelect resume`';
    const leader = receipt.leaderId === null ? '' : ` ${name(receipt.leaderId)} ends term ${receipt.term} at its next renewal.`;
    return [receipt, `The group is paused ${end}.${leader}`];
  }));

export const resume = () => commandOf('resume')
  .action((flags) => run('resume', flags, async (elector, words) => {
    const receipt = await elector.resume(words);
    return [receipt, receipt.written ? 'The group is resumed.' : 'The group is not paused: nothing was written.'];
  }));

async function run(command, { by = userName(), why, json, for: _for, until: _until, ...flags }, ask) {
  process.exitCode = EXIT.failed;
  const { Elector } = await import('edgelect');
  try {
    const elector = new Elector(await namedOptions(flags));
    const [receipt, text] = await ask(elector, { by, why });
    console.log(json ? jsonOf(receipt) : text);
    process.exitCode = EXIT.done;
  } catch (error) {
    const code = codeOf(error, command);
    process.exitCode = error.code === 'EDGELECT_NOBODY_LEADS' ? EXIT.nobody : code;
  }
}

function userName() {
  try {
    return os.userInfo().username;
  } catch {
    // A container's user may have no name.
    return '';
  }
}
