// What monitors read, by the parser of Prometheus's own client for Python; and the alerts of docs/alerts.yml, by Prometheus's promtool.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { test } from 'node:test';
import { Electors, MemoryStorage, nodeHandler } from 'edgelect';
import { OPENMETRICS, PROMTOOL, inRoot } from '../../js/tools/paths.mjs';
import { KEY, LONG, leads, member, newGroup, putRecord, slotRecord, until } from './group.mjs';

const PARSE = `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[f.name, f.type, f.unit, f.documentation, [[s.name, s.labels, s.value] for s in f.samples]] for f in families]))
`;

/** The metrics of a text: `of(name, labels)` is the value of the one series that has these labels. */
const parsed = (text) => {
  const json = execFileSync('python3', ['-c', PARSE], { input: text, encoding: 'utf8', env: { ...process.env, PYTHONPATH: OPENMETRICS } });
  const families = JSON.parse(json).map(([name, type, unit, help, samples]) => ({ name, type, unit, help, samples }));
  const series = families.flatMap(({ samples }) => samples);
  const matches = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);
  const of = (name, labels = {}) => {
    const found = series.filter(([own, has]) => own === `edgelect_${name}` && matches(has, labels));
    assert.ok(found.length <= 1, `${name} ${JSON.stringify(labels)}: ${found.length} series`);
    return found[0]?.[2];
  };
  return { families, of };
};

const asked = async (served) => {
  const answer = await served.handleRequest(new Request('http://localhost/metrics'));
  assert.equal(answer.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  return parsed(await answer.text());
};

test('a member shows what it has counted, in all its sessions, and no session\'s id', async () => {
  const elector = member(await newGroup(), { ...LONG, serverId: undefined });
  assert.equal((await asked(elector)).of('authority', { group: KEY }), undefined, 'before it was started');
  await elector.start();
  await leads(elector);
  const { session } = elector.status();
  await until(() => elector.status().requests.write > 3);
  const text = elector.metrics();
  assert.ok(!text.includes(session.slice(0, 8)));
  const led = parsed(text);
  assert.equal(led.of('authority', { group: KEY }), 1);
  assert.equal(led.of('term'), elector.status().term);
  assert.ok(led.of('store_requests_total', { operation: 'renew', outcome: 'ok' }) >= 2);
  assert.equal(led.of('store_requests_total', { operation: 'claim', outcome: 'ok' }), 1);
  assert.equal(led.of('store_request_duration_seconds_count', { operation: 'claim' }), 1);
  assert.deepEqual(led.families.filter(({ name, help }) => !name.startsWith('edgelect_') || help === ''), []);
  for (let stops = 1; stops <= 2; stops += 1) {
    await elector.stop();
    const { of } = await asked(elector);
    assert.deepEqual([of('authority'), of('terms_total', { reason: 'stopped' })], [0, stops]);
    await elector.start();
    await leads(elector);
  }
  await elector.stop();
});

test('the slots of a member are counted by outcome, and the newest one stays to be seen', async () => {
  const storage = await newGroup();
  const slot = Date.now() - (Date.now() % 60_000);
  putRecord(storage, slotRecord(slot - 10 * 60_000));
  const elector = member(storage, LONG);
  const run = (minutes, job) => elector.runScheduled(slot - minutes * 60_000, job, { policy: 'atMostOnce', period: 60_000 });
  await run(5, () => {});
  await run(5, () => {});
  await run(4, () => Promise.reject(new Error('no')));
  const { of } = await asked(elector);
  const counted = ['ok', 'failed', 'taken', 'missed', 'skipped'].map((outcome) => of('slots_total', { outcome }));
  assert.deepEqual(counted, [1, 1, 1, 4, undefined]);
  assert.equal(of('last_slot_timestamp_seconds', { group: KEY }), (slot - 4 * 60_000) / 1000);
  assert.equal(of('authority'), undefined);
});

test('many groups are one text, and a name that would break it does not', async () => {
  const electors = new Electors({ storage: new MemoryStorage(), serverId: 'a' });
  const hostile = 'a"} 1\\n\\"# EOF\\';
  electors.add('one');
  electors.add(hostile);
  for (const text of [electors.metrics(), await (await electors.handleRequest(new Request('http://localhost/metrics'))).text()]) {
    const { of, families } = parsed(text);
    assert.deepEqual([of('error', { group: 'one' }), of('error', { group: hostile })], [0, 0]);
    assert.equal(families.filter(({ name }) => name === 'edgelect_error').length, 1);
  }
  assert.equal((await asked({ handleRequest: () => electors.handleRequest(new Request('http://localhost/metrics?group=one')) })).of('error', { group: hostile }), undefined);
});

test('a path that only a URL parser takes for ours is not served', async () => {
  const handle = nodeHandler(member(new MemoryStorage()));
  const statusOf = (url) => new Promise((resolve) => {
    const outgoing = { once: () => {}, writeHead: (status) => (resolve(status), outgoing), end: () => {} };
    void handle({ method: 'GET', url }, outgoing);
  });
  const paths = ['/metrics?x=1', '//x/metrics', '/a/../metrics', '/%2e%2e/status.json', 'http://x/metrics'];
  assert.deepEqual(await Promise.all(paths.map(statusOf)), [200, 404, 404, 404, 404]);
  assert.equal(await new Promise((resolve) => { void handle({ method: 'GET', url: '/a/../metrics' }, { once: () => {} }, () => resolve('next')); }), 'next');
});

const noTool = fs.existsSync(PROMTOOL) ? false : 'promtool is not here: js/tools/setup.mjs unpacks it on Debian and Ubuntu';
test('the alerts say what they promise, tried against recorded series', { skip: noTool }, () => {
  execFileSync(PROMTOOL, ['test', 'rules', inRoot('tests/js/alerts.test.yml')], { stdio: 'pipe' });
});
