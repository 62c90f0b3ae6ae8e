// The doctor over an R2 binding; at `/forgetful` over one whose `put` leaves the condition out.
import { Elector, R2Storage } from '../../js/workerd.js';

const counted = { get: 0, put: 0 };

const watched = (bucket, { forgetful }) => ({
  head: (key) => bucket.head(key),
  get: (key) => {
    counted.get += 1;
    return bucket.get(key);
  },
  put: (key, value, options) => {
    counted.put += 1;
    return bucket.put(key, value, forgetful ? {} : options);
  },
});

export default {
  async fetch(request, { JOBS }) {
    const bucket = watched(JOBS, { forgetful: new URL(request.url).pathname === '/forgetful' });
    const elector = new Elector({ storage: new R2Storage(bucket), lockfilePath: 'leader/report.json' });
    return Response.json({ ...await elector.doctor({ races: 5 }), counted });
  },
};
