// Members that ask each other by TLS which only their own authority has signed, on Node and on Deno.
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:https';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { Elector, nodeHandler } from 'edgelect';

const HELP = `node main.mjs --name NAME --addr HOST:PORT [options]
deno run --unstable-no-legacy-abort --allow-env --allow-net --allow-read main.mjs --name NAME --addr HOST:PORT [options]

Start it twice, with two names and two ports. One member leads and holds the other one's question instead of letting it read the
store. End the leader: the other member is told at once, and leads.

  --name NAME       the name of this member
  --addr HOST:PORT  where it listens, and where others ask it
  --ca FILE         the authority that has signed the members' certificates (default ca.pem)
  --cert FILE       this member's certificate, for HOST (default cert.pem)
  --key FILE        its key (default key.pem)
  --help            this text

The group, the bucket and EDGELECT_PEER_SECRET come from variables (docs/options.md):
  EDGELECT_LOCKFILE_PATH=leader/peers.json EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=… …`;

const OPTIONS = {
  name: { type: 'string' },
  addr: { type: 'string' },
  ca: { type: 'string', default: 'ca.pem' },
  cert: { type: 'string', default: 'cert.pem' },
  key: { type: 'string', default: 'key.pem' },
  help: { type: 'boolean', default: false },
};

/** A question that is not answered within this time is shown as held. */
const HELD_MS = 200;
/** How long the last answers have. */
const CLOSE_MS = 500;

const read = () => {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) return values;
  if (!values.name) throw new Error('--name: give each member its own');
  const [, hostname, port] = /^([\w.-]+):(\d+)$/.exec(values.addr ?? '') ?? [];
  if (!port) throw new Error(`--addr ${values.addr ?? ''}: must be HOST:PORT`);
  return { ...values, hostname, port: Number(port) };
};

/** Serves on either runtime; gives what closes the server. */
const serve = async ({ hostname, port, cert, key }, handle) => {
  if (globalThis.Deno) {
    const server = Deno.serve({ hostname, port, cert, key, onListen() {} }, handle);
    return () => server.shutdown();
  }
  const server = createServer({ cert, key }, nodeHandler({ handleRequest: handle })).listen(port, hostname);
  await once(server, 'listening');
  return () => {
    server.close();
    // An answer may be under way: its connection is idle only then.
    setTimeout(() => server.closeIdleConnections(), CLOSE_MS).unref();
  };
};

const main = async () => {
  const { help, name, addr, hostname, port, ...files } = read();
  if (help) return console.log(HELP);
  const [ca, cert, key] = [files.ca, files.cert, files.key].map((file) => fs.readFileSync(file, 'utf8'));
  const elector = new Elector({ serverId: name, serverAddr: addr, peerMode: true, peerTls: { ca } });
  const close = await serve({ hostname, port, cert, key }, async (request) => {
    const startMs = performance.now();
    const held = setTimeout(() => console.log(`${name} holds a question`), HELD_MS);
    const response = await elector.handleRequest(request);
    clearTimeout(held);
    console.log(`${name} answers ${response.status} after ${Math.round(performance.now() - startMs)} ms`);
    return response;
  });
  elector.stopOnSignals();
  const work = async ({ token, signal }) => {
    console.log(`${name} leads with token ${token}`);
    if (!signal.aborted) await once(signal, 'abort');
  };
  await elector.lead(work);
  // Until the lease is released and those who hold a question are told.
  await elector.stop();
  await close();
  console.log(`${name} has stopped`);
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exit(1);
});
