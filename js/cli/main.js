// The command line: one file for each command, listed here.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import spec from '../../src/cli/commands.json';
import { PlainCommand } from './command.js';
import { completions } from './completions.js';
import { demo } from './demo.js';
import { doctor } from './doctor.js';
import { init } from './init.js';
import { starter } from './new.js';
import { pause, resume, stepDown } from './operator.js';
import { plan } from './plan.js';
import { run } from './run.js';
import { slot } from './slot.js';
import { status } from './status.js';
import { closeStores } from './store.js';
import { watch } from './watch.js';

const COMMANDS = [demo, run, slot, status, watch, stepDown, pause, resume, doctor, init, plan, starter, completions];
// Both stand as deep in the package as this file does once it is built.
const README = fileURLToPath(new URL('../../README.md', import.meta.url));
const { version } = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

const program = new PlainCommand('edgelect')
  .description(spec.about)
  .enablePositionalOptions()
  .version(version, '-v, --version', 'show the version')
  .addHelpText('after', `
Example:
  npx edgelect demo               a crash, a resignation and a late write, in five seconds
  npx edgelect run --lockfile-path leader/job -- COMMAND
                                  a command that runs only on the machine that leads
  npx edgelect doctor             whether your bucket may be trusted with leases
  npx edgelect init --lockfile-path leader/job
                                  a new group, whose first member leads at once
  npx edgelect status leader/job  who leads, or why nobody does
  npx edgelect pause --lockfile-path leader/job --for 2h
                                  nobody leads for two hours
  npx edgelect new node reports   a starter project with your own values

edgelect COMMAND --help says more about one command.
Read on: ${README}`);
for (const command of COMMANDS) program.addCommand(command({ readme: README }));

// A reader that has gone away (`edgelect … | head`) wants no more of it.
process.stdout.on('error', (error) => process.exit(error.code === 'EPIPE' ? (process.exitCode ?? 0) : (process.exitCode || 1)));
// Nor does a lost terminal end what runs under a lease.
process.stderr.on('error', () => {});

program.parseAsync().catch((error) => {
  console.error(`edgelect: ${error.message}`);
  process.exitCode ||= 1;
}).finally(closeStores);
