// Workers in a workerd of their own, by Miniflare; it wants Node 24.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

export const COMPATIBILITY_DATE = '2026-11-01';

/** The files of a Worker as Miniflare wants them: it enters by the first, which is the first that is no wasm. */
export function modulesOf(files) {
  const scripts = files.filter((file) => file.endsWith('.js')).map((file) => ({ type: 'ESModule', path: file }));
  const wasms = files.filter((file) => file.endsWith('.wasm')).map((file) => ({ type: 'CompiledWasm', path: file }));
  return [...scripts, ...wasms];
}

/** The modules of a bundle that lies in this folder. */
export const bundleIn = (folder) => ({ modules: modulesOf(readdirSync(folder).sort().map((name) => path.join(folder, name))), modulesRoot: folder });

/** A workerd with a Worker, or with `workers`, in it; `onLog` hears what they write to their consoles. */
export function startWorkerd({ onLog = () => {}, ...options }) {
  const handleStructuredLogs = ({ message }) => onLog(message);
  const date = options.workers === undefined ? { compatibilityDate: COMPATIBILITY_DATE } : {};
  return new Miniflare(convertV4MiniflareOptions({ ...date, handleStructuredLogs, ...options }));
}

/** Fires the cron of a Worker once, of the only one unless named; gives how that ended. */
export async function fireCron(workerd, scheduledTime = new Date(), name) {
  const worker = await workerd.getWorker(name);
  return (await worker.scheduled({ cron: '* * * * *', scheduledTime })).outcome;
}
