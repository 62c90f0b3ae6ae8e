// What the processes of both runs say and hear: lines, of JSON on stdout.
import { createInterface } from 'node:readline';

export const report = (event, more = {}) => process.stdout.write(`${JSON.stringify({ event, atMs: Date.now(), ...more })}\n`);

/** Says that it is there. */
export const isUp = () => report('status', { role: 'follower', requests: { read: 0, write: 0 } });

/** Hears each line until the one who started us is gone: nobody would ever ask us to stop. */
export const obey = (onLine) => createInterface({ input: process.stdin }).on('line', onLine).on('close', () => process.exit(0));

/** What our starter has set, for a Worker that we run. */
export const ownVariables = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(EDGELECT|LIVE)_/.test(name)));
