// Runs in Node what Wrangler made for workerd: `in-workerd.mjs FOLDER JSON` gives what the Worker answers to the JSON.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

const [folder, json] = process.argv.slice(2);
// The first module is the Worker's entry.
const names = readdirSync(folder).filter((name) => /\.(js|wasm)$/.test(name)).sort((one) => (one.endsWith('.js') ? -1 : 1));
const modules = names.map((name) => ({ type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path: path.join(folder, name) }));
const worker = new Miniflare(convertV4MiniflareOptions({ modules, modulesRoot: folder, compatibilityDate: '2026-11-01' }));
try {
  const answer = await worker.dispatchFetch('http://worker/', { method: 'POST', body: json });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  const { version } = createRequire(createRequire(import.meta.url).resolve('miniflare'))('workerd/package.json');
  console.log(JSON.stringify({ ...JSON.parse(text), version, from: names.find((name) => name.endsWith('.wasm')) }));
} finally {
  await worker.dispose();
}
