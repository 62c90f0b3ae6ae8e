// Runs in Node what Wrangler made for workerd: `in-workerd.mjs FOLDER JSON...` sends the Worker each JSON, all at once and
// to one isolate, and prints the list of its answers.
import { createRequire } from 'node:module';
import { bundleIn, startWorkerd } from '../../js/tools/miniflare.mjs';

const [folder, ...questions] = process.argv.slice(2);
// What it writes to its console is shown.
const worker = startWorkerd({ ...bundleIn(folder), onLog: (text) => console.error(text) });
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
