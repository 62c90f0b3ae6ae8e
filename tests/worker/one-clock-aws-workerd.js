// An entry for Workers, and what it makes of a host.
import '../../js/aws-workerd.js';
import { Host } from '../../js/host.js';

export default { fetch: () => Response.json({ singleClock: new Host().singleClock, named: 'navigator' in globalThis }) };
