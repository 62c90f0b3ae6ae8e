// moto's emulation of AWS on loopback. Its Route 53 takes a second CREATE of a name that has a value: a store that the probe must
// refuse. Its IAM carries policies out. Empty at each start.
import { MOTO } from './paths.mjs';
import { HOST, startServer } from './server.mjs';

// It is Python that compiles some hundred modules; a busy machine takes 15 s.
const READY_MS = 90_000;

// Its conditional writes are no single step, so that two at once may both take effect: it answers one request at a time.
const ONE_BY_ONE = `
import sys
from moto import server
run = server.run_simple
server.run_simple = lambda *args, **options: run(*args, **{**options, "threaded": False})
server.main(sys.argv[1:])
`;

/** Starts it and resolves to `{ endpoint, stop }` once it answers. It looks at no signature and no policy until `/moto-api/reset-auth`
 * says how many requests from now on it lets pass without. */
export const startMoto = () => startServer({ name: 'moto', readyMs: READY_MS, describe });

function describe({ folder, ports: [port] }) {
  const endpoint = `http://${HOST}:${port}`;
  return {
    command: 'python3',
    // -S: what the machine has of the same packages is not meant.
    args: ['-S', '-c', ONE_BY_ONE, '-H', HOST, '-p', String(port)],
    env: { TMPDIR: folder, PYTHONPATH: MOTO },
    given: { endpoint },
    isReady: () => fetch(`${endpoint}/moto-api/`, { signal: AbortSignal.timeout(10_000) }),
  };
}
