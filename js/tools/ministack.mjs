// An AWS of our own on loopback: ministack, which emulates S3, DynamoDB and Route 53. Empty at each start.
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { MINISTACK } from './paths.mjs';
import { HOST, startServer } from './server.mjs';

const READY_MS = 30_000;

/** Starts it and resolves to `{ endpoint, accessKeyId, secretAccessKey, stop }` once it answers. */
export const startMinistack = () => startServer({ name: 'ministack', readyMs: READY_MS, describe });

function describe({ folder, ports: [port] }) {
  const endpoint = `http://${HOST}:${port}`;
  return {
    command: 'python3',
    args: [path.join(MINISTACK, 'bin/ministack')],
    // Nothing but what we ask of it: no other listener, no data of an earlier run.
    env: {
      TMPDIR: folder, PYTHONPATH: MINISTACK, PYTHONDONTWRITEBYTECODE: '1', GATEWAY_PORT: String(port), BIND_HOST: HOST,
      SERVICES: 's3,dynamodb,route53', IOT_MTLS_ENABLED: '0', SFTP_ENABLED: '0',
    },
    given: { endpoint, accessKeyId: `dev${randomBytes(6).toString('hex')}`, secretAccessKey: randomBytes(20).toString('hex') },
    isReady: () => fetch(`${endpoint}/_ministack/health`, { signal: AbortSignal.timeout(2_000) }),
  };
}

/** Runs the work beside one of its own, given to it as the variables that the tests read. */
export async function withMinistack(work) {
  const { endpoint, accessKeyId, secretAccessKey, stop } = await startMinistack();
  try {
    await work({
      EDGELECT_TEST_AWS_ENDPOINT: endpoint,
      EDGELECT_TEST_AWS_ACCESS_KEY_ID: accessKeyId,
      EDGELECT_TEST_AWS_SECRET_ACCESS_KEY: secretAccessKey,
    });
  } finally {
    await stop();
  }
}
