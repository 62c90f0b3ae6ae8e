// A command on a terminal, as a person types: by Python, because Node makes none.
import { spawn } from 'node:child_process';
import { endOf } from '../../js/tools/cleanup.mjs';

const PYTHON = `
import json, os, pty, sys
command, prompt, answers = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = b''
while True:
    try:
        shown = os.read(terminal, 4096)
    except OSError:
        break
    if not shown:
        break
    sys.stdout.buffer.write(shown)
    seen += shown
    if prompt.encode() in seen and answers:
        seen = b''
        os.write(terminal, answers.pop(0).encode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** Runs it and types the next answer whenever it shows the prompt: `{ code, shown }`, without what moves the cursor. */
export const onTerminal = async (command, prompt, answers, cwd) => {
  const child = spawn('python3', ['-c', PYTHON, JSON.stringify([command, prompt, answers])], { cwd, timeout: 60_000, stdio: ['ignore', 'pipe', 'inherit'] });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (shown += text));
  const code = await endOf(child);
  return { code, shown: shown.replace(/\u001b\[\d*[A-Z]/g, '').replaceAll('\r', '') };
};
