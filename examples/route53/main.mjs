// A member that leads by a TXT record in a Route 53 zone, says what happens, and checks the set-up first.
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Elector, Route53Storage } from 'edgelect';

const HELP = `node examples/route53/main.mjs --zone ID --domain NAME [options]

Start it twice, on one machine or on two. One of the processes leads; each says what it is, and when that changes. End the
leader with Ctrl-C: it stops its work, gives the lease back and ends, and the other one leads.

  --zone ID        the hosted zone, such as Z1234567890ABC
  --domain NAME    the zone's domain, or one below it, such as coordination.example.com
  --prefix NAME    what the record's name begins with (default lock)
  --shard ID       the shard, in lower case (default example): the record is PREFIX.SHARD.DOMAIN
  --owner NAME     the name of this member (default HOST-PID-UUID); no blank in it
  --lease MS       the lease (default 15000), and with it
  --renew MS       how often it is renewed (default 5000); a zone takes five changes a second, whoever makes them
  --endpoint URL   where Route 53 is, for emulators (default AWS)
  --check          check the set-up and end: the credentials, the zone, the rights, that changes of it are conditional, and that
                   the lease can be written
  --init           start the group: once, before the first member ever runs, in no start script
  --help           this text

The credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary ones, AWS_SESSION_TOKEN; they need
  route53:ListResourceRecordSets and route53:ChangeResourceRecordSets on arn:aws:route53:::hostedzone/ID
The zone is made by
  aws route53 create-hosted-zone --name coordination.example.com --caller-reference $(date +%s)
and who leads is seen by
  dig +short TXT lock.example.coordination.example.com`;

const say = (event, more) => console.log(JSON.stringify({ at: new Date().toISOString(), event, ...more }));

const OPTIONS = {
  zone: { type: 'string' },
  domain: { type: 'string' },
  prefix: { type: 'string', default: 'lock' },
  shard: { type: 'string', default: 'example' },
  owner: { type: 'string', default: `${os.hostname()}-${process.pid}-${crypto.randomUUID()}` },
  lease: { type: 'string', default: '15000' },
  renew: { type: 'string', default: '5000' },
  endpoint: { type: 'string' },
  check: { type: 'boolean', default: false },
  init: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
};

const storageOf = ({ zone, domain, prefix, endpoint }) => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = process.env;
  if (!accessKeyId || !secretAccessKey) throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set');
  const credentials = { accessKeyId, secretAccessKey, sessionToken };
  return new Route53Storage({ hostedZoneId: zone, domainName: domain, recordPrefix: prefix, endpoint, credentials });
};

const electorOf = (options, storage, more) =>
  new Elector({
    storage,
    lockfilePath: options.shard,
    serverId: options.owner,
    leaderTimeout: Number(options.lease),
    frequentInterval: Number(options.renew),
    ...more,
  });

/** The zone is judged, then a group of its own is made, led and given back: nothing of the real shard is touched. */
const check = async (options, storage) => {
  const shard = `check-${crypto.randomUUID()}`;
  const elector = electorOf({ ...options, shard }, storage);
  const { steps } = await elector.doctor({ races: 1, onStep: (one) => say('judged', one) });
  const broken = steps.find(({ finding }) => finding === 'violated');
  if (broken) throw new Error(`this zone must not be used: at the step "${broken.step}" ${broken.why}`);
  await elector.init();
  say('written', { record: `${options.prefix}.${shard}.${options.domain}` });
  await elector.lead((term) => say('led', { token: term.token }), { signal: AbortSignal.timeout(60_000) });
  say('fine', { note: 'the records of this check stay in the zone and may be deleted' });
};

const main = async () => {
  const { values: options } = parseArgs({ options: OPTIONS });
  if (options.help) return console.log(HELP);
  for (const name of ['zone', 'domain']) if (!options[name]) throw new Error(`--${name} is not given`);
  const storage = storageOf(options);
  if (options.check) return check(options, storage);
  if (options.init) return electorOf(options, storage).init().then(() => say('initialised', { shard: options.shard }));
  const ending = new AbortController();
  const { signal } = ending;
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => ending.abort());
  const elector = electorOf(options, storage, {
    onAcquireLeadership: ({ token }) => say('leader', { owner: options.owner, token }),
    onLoseLeadership: ({ reason }) => say('follower', { owner: options.owner, reason }),
    onNewLeader: (leaderId) => say('led by', { leaderId }),
  });
  say('started', { owner: options.owner, shard: options.shard });
  await elector.start();
  // A zone that can't be used at all ends it.
  elector.waitForLeadership({ signal }).catch((error) => ending.abort(error));
  while (!signal.aborted) {
    const { role, remainingMs, error } = elector.status();
    say('status', { role, remainingMs, error });
    await sleep(Number(options.renew), undefined, { signal }).catch(() => {});
  }
  await elector.stop();
  say('ended');
  if (signal.reason.code === 'EDGELECT_STORE') throw signal.reason;
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
