// One member of the group, in a process of its own; reports on stdout in JSON lines, obeys `resign` and `stop` on stdin.
import http from 'node:http';
import { createInterface } from 'node:readline';
import { Elector, S3Storage } from 'edgelect';

const STATUS_EVERY_MS = 500;
const { env } = process;

const report = (event, more = {}) => process.stdout.write(`${JSON.stringify({ event, atMs: Date.now(), ...more })}\n`);
const number = (name) => (env[name] === undefined ? undefined : Number(env[name]));

const server = http.createServer(answer);
await new Promise((resolve, reject) => {
  server.once('error', reject);
  server.listen(Number(env.EDGELECT_PORT ?? 0), '127.0.0.1', resolve);
});

/** For those who add work to it. */
export const elector = new Elector({
  storage: new S3Storage({
    endpoint: env.EDGELECT_ENDPOINT,
    bucket: env.EDGELECT_BUCKET,
    region: env.EDGELECT_REGION,
    pathStyle: env.EDGELECT_PATH_STYLE === 'true',
    credentials: {
      accessKeyId: env.EDGELECT_ACCESS_KEY_ID ?? env.AWS_ACCESS_KEY_ID,
      secretAccessKey: env.EDGELECT_SECRET_ACCESS_KEY ?? env.AWS_SECRET_ACCESS_KEY,
    },
  }),
  lockfilePath: env.EDGELECT_LOCKFILE_PATH,
  serverId: env.EDGELECT_SERVER_ID,
  serverAddr: env.EDGELECT_SERVER_ADDR ?? `127.0.0.1:${server.address().port}`,
  leaderTimeout: number('EDGELECT_LEADER_TIMEOUT'),
  frequentInterval: number('EDGELECT_FREQUENT_INTERVAL'),
  infrequentInterval: number('EDGELECT_INFREQUENT_INTERVAL'),
  follow: env.EDGELECT_FOLLOW,
  // The screen shows what happens.
  warn: false,
  onAcquireLeadership(term) {
    report('acquired', { term: term.token, remainingMs: term.remaining() });
  },
  onLoseLeadership({ term, reason }) {
    report('lost', { term, reason });
  },
  onNewLeader(leaderId) {
    report('leader', { leaderId });
  },
});

// What follows does not wait for the store's first answer: it shows also a member that has none yet.
void elector.start().catch(({ message }) => {
  report('error', { error: message });
  process.exit(1);
});
setInterval(() => {
  const { role, term, remainingMs, requests, leaderId, error } = elector.status();
  report('status', { role, term, remainingMs, requests, leaderId, error });
}, STATUS_EVERY_MS);

const commands = {
  resign: () => elector.resign(),
  stop: async () => {
    await elector.stop();
    report('stopped');
    process.exit(0);
  },
};
createInterface({ input: process.stdin })
  .on('line', (line) => commands[line.trim()]?.().catch((error) => report('error', { error: error.message })))
  // The one who asked for us is gone, so nobody will ever ask us to stop.
  .on('close', () => process.exit(0));

async function answer(incoming, outgoing) {
  try {
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method,
      headers: Object.entries(incoming.headersDistinct).flatMap(([name, values]) => values.map((value) => [name, value])),
    });
    const response = await elector.handleRequest(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(Buffer.from(await response.arrayBuffer()));
  } catch (error) {
    report('error', { error: error.message });
    outgoing.writeHead(500).end();
  }
}
