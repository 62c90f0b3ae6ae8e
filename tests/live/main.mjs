// `npm run live`: real members, a real store, a network and processes that fail by a seeded plan.
// Loads the rest only after the set-up: before it there are no packages.
import { randomInt } from 'node:crypto';
import { build } from '../../js/tools/build.mjs';
import { parsed, say } from '../../js/tools/command.mjs';
import { PlainError, exit, fail } from '../../js/tools/run.mjs';
import { ensure } from '../../js/tools/setup.mjs';

const HELP = `npm run live                     one minute of faults around members on Node, Deno, Bun and workerd and a real store
npm run live -- --seconds 600    the long run: 1 to 86400; starting, healing and stopping come on top
npm run live -- --seed N         the plan of an earlier run, 0 to 4294967295, as far as real time allows: what fails and for
                                 how long is the same, who leads at that moment need not be
npm run live -- --slots 1000     so many cron slots under each policy, over three deployed Workers and two Node members; 10 to 5000,
                                 and --seed N draws the same triggers, deaths, weather and answers of the job again
The leader acts on a resource that refuses old tokens and writes each attempt down, in build/live/acts.jsonl. Ends with 1 where
that log shows acts out of the order of their terms, one token of two sessions, or authority of two sessions at once; where
nobody acts soon after the last fault; and, from 60 s on, where a fault never did its work or a runtime never led, even in up to
two minutes more, which a busy machine gets for that.
Slots lie in the past and are fired as fast as the members manage: doubled, late, out of order, over one another. What was seen
is in build/live/slots-POLICY.jsonl. Ends with 1 where a slot was claimed by two sessions or by none, begun twice at most once,
lost at least once, where a token or a slot fell, or where a member reported what the records and the job's own log deny.`;

const OPTIONS = { seconds: { type: 'string' }, slots: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean', short: 'h' } };

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  const ofSlots = values.slots !== undefined;
  if (ofSlots && values.seconds !== undefined) throw new PlainError(`--slots and --seconds are two runs\n${HELP}`);
  const seed = whole('seed', values.seed ?? String(randomInt(2 ** 32)), 0, 2 ** 32 - 1);
  const count = ofSlots ? whole('slots', values.slots, 10, 5_000) : whole('seconds', values.seconds ?? '60', 1, 86_400);
  await ensure();
  await build(ofSlots ? ['npm', 'worker'] : ['npm']);
  console.log(`edgelect live: ${count} ${ofSlots ? 'slots under each policy' : 's'} with seed ${seed}`);
  if (ofSlots) return (await import('./slots.mjs')).slots({ slots: count, seed });
  return (await import('./live.mjs')).live({ seconds: count, seed });
}

function whole(name, text, least, most) {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new PlainError(`--${name} ${text}: must be a whole number from ${least} to ${most}\n${HELP}`);
}

main(process.argv.slice(2)).then(exit, fail);
