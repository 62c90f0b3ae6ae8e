// A checkpoint over an R2 binding. The first trigger is cut off from the bucket under its job: its renewals fail, and the last
// write of its state arrives once the second trigger has opened it. `/` tells what each found.
import { Elector, R2Storage } from '../../js/workerd.js';

const KEY = 'reports/cursor.json';
const FAST = { leaderTimeout: 1500, frequentInterval: 400, storeSkew: 500, lockfilePath: 'leader/report.json' };
const told = { cut: false, late: [] };
const elector = (bucket, serverId) => new Elector({ ...FAST, storage: new R2Storage(bucket), serverId });
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
};

const cutOff = (bucket) => ({
  head: (key) => bucket.head(key),
  get: (key) => bucket.get(key),
  put: async (key, ...more) => {
    if (!told.cut) return bucket.put(key, ...more);
    if (key !== KEY) throw new Error('cut off');
    await until(() => told.second);
    const object = await bucket.put(key, ...more);
    told.late.push(object === null ? 'refused' : 'taken');
    return object;
  },
});

const first = async (bucket) => {
  await elector(bucket, 'first').init();
  await elector(cutOff(bucket), 'first').lead(async (term) => {
    const state = await term.checkpoint(KEY);
    await state.write({ next: 1 });
    told.first = term.token;
    told.cut = true;
    told.error = (await state.write({ next: 99 }).catch((error) => error)).code;
  }).catch(() => {});
  await until(() => told.late.length > 0);
};

const second = (bucket) => elector(bucket, 'second').lead(async (term) => {
  const state = await term.checkpoint(KEY);
  told.read = state.value;
  told.second = term.token;
  await until(() => told.late.length > 0);
  await state.write({ next: 2 });
});

export default {
  fetch: () => Response.json(told),
  scheduled: (_event, { JOBS }) => (told.first ? second : first)(JOBS),
};
