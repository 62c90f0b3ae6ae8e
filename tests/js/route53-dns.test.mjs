// The lock as a resolver shows it: no emulator answers DNS, so what the API lists is served here, and a real resolver asks for it.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import dns from 'node:dns/promises';
import { before, test } from 'node:test';
import packet from 'dns-packet';
import { Elector, Route53Storage } from 'edgelect';
import { atEnd } from './ending.mjs';
import { PATIENT, startAws } from './ministack.mjs';

const DOMAIN = 'coordination.example.com';

let aws;
let zone;
let server;
before(async () => {
  aws = await startAws();
  zone = await aws.createZone(DOMAIN);
  server = await startDns();
});
/** The strings of a value as the API names it: in quotation marks, with other bytes behind a backslash. */
const stringsOf = (value) =>
  [...value.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, quoted]) => {
    const plain = quoted.replace(/\\([0-7]{3})|\\(.)/g, (_whole, octal, itself) => (octal ? String.fromCharCode(parseInt(octal, 8)) : itself));
    return Buffer.from(plain, 'latin1');
  });

/** A name server for the zone; it has what Route 53 lists when it is asked. */
const startDns = async () => {
  const socket = dgram.createSocket('udp4');
  socket.on('message', async (message, { address, port }) => {
    const { id, questions } = packet.decode(message);
    const [{ name, type }] = questions;
    const values = type === 'TXT' ? await aws.txt(zone, name.toLowerCase()) : [];
    const answers = values.map((value) => ({ name, type, class: 'IN', ttl: 60, data: stringsOf(value) }));
    socket.send(packet.encode({ type: 'response', id, flags: packet.AUTHORITATIVE_ANSWER, questions, answers }), port, address);
  });
  await new Promise((resolve) => socket.bind(0, '127.0.0.1', resolve));
  atEnd(() => socket.close());
  return socket;
};

const resolved = (shard) => {
  const resolver = new dns.Resolver({ timeout: 10_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  return resolver.resolveTxt(`lock.${shard}.${DOMAIN}`);
};

test('a resolver shows who leads and until when first, and the whole record in the strings of the second value', async () => {
  const { endpoint, credentials } = aws;
  const storage = new Route53Storage({ endpoint, credentials, hostedZoneId: zone, recordPrefix: 'lock', domainName: DOMAIN });
  const elector = new Elector({ storage, lockfilePath: 'seen', serverId: 'worker-1', serverAddr: `${'long.'.repeat(30)}example.com:443`, ...PATIENT });
  await elector.init();
  await elector.lead(async (term) => {
    const [first, second, ...others] = await resolved('seen');
    assert.deepEqual(others, []);
    assert.equal(first.length, 1, 'members of shardcoordinator take one string');
    const [owner, epoch, ...more] = first[0].split(' ');
    assert.deepEqual([owner, more], ['worker-1', []]);
    const ahead = Number(epoch) - Date.now() / 1_000;
    assert.ok(ahead > 0 && ahead <= PATIENT.leaderTimeout / 1_000 + 3, `${epoch} is ${ahead} s ahead`);
    assert.ok(second.length > 1 && second.every((string) => string.length <= 255), JSON.stringify(second));
    const [, record] = /^~edgelect (\{.*\})$/.exec(second.join(''));
    const { leaderID, term: token, leaseMs } = JSON.parse(record);
    assert.deepEqual([leaderID, token, leaseMs], ['worker-1', term.token, PATIENT.leaderTimeout]);
  });
  const [[released]] = await resolved('seen');
  assert.equal(released, 'worker-1 0', 'a released lock says so');
});

test('a shard that nobody has started has no record', async () => {
  await assert.rejects(resolved('nobody'), { code: 'ENODATA' });
});
