// Runs in Node what Wrangler made for workerd: `in-workerd.mjs FOLDER JSON...` sends the Worker each JSON, all at once and
// to one isolate, and prints the list of its answers.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

const [folder, ...questions] = process.argv.slice(2);
// The first module is the Worker's entry.
const names = readdirSync(folder).filter((name) => /\.(js|wasm)$/.test(name)).sort((one) => (one.endsWith('.js') ? -1 : 1));
const modules = names.map((name) => ({ type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path: path.join(folder, name) }));
const worker = new Miniflare(convertV4MiniflareOptions({ modules, modulesRoot: folder, compatibilityDate: '2026-11-01' }));
const ask = async (body) => {
  const answer = await worker.dispatchFetch('http://worker/', { method: 'POST', body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return JSON.parse(text);
};
try {
  const answers = await Promise.all(questions.map(ask));
  const { version } = createRequire(createRequire(import.meta.url).resolve('miniflare'))('workerd/package.json');
  console.log(JSON.stringify({ version, answers }));
} finally {
  await worker.dispose();
}
