// What monitors read, by the parser of Prometheus's own client for Python; and the alerts of docs/alerts.yml, by Prometheus's promtool.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { test } from 'node:test';
import { Electors, MemoryStorage, nodeHandler } from 'edgelect';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { OPENMETRICS, PROMTOOL, inRoot } from '../../js/tools/paths.mjs';
import { KEY, LONG, leads, member, newGroup, putRecord, slotRecord, started, until } from './group.mjs';

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
  await started(elector);
  const { session } = elector.status();
  await until(() => elector.status().requests.write > 3);
  const text = elector.metrics();
  assert.ok(!text.includes(session.slice(0, 8)));
  const led = parsed(text);
  const claims = [led.of('store_requests_total', { operation: 'claim', outcome: 'ok' }), led.of('store_request_duration_seconds_count', { operation: 'claim' })];
  assert.deepEqual([led.of('authority', { group: KEY }), led.of('term'), ...claims], [1, elector.status().term, 1, 1]);
  assert.ok(led.of('store_requests_total', { operation: 'renew', outcome: 'ok' }) >= 2);
  assert.deepEqual(led.families.filter(({ name, help }) => !name.startsWith('edgelect_') || help === ''), []);
  for (let stops = 1; stops <= 2; stops += 1) {
    await elector.stop();
    const { of } = await asked(elector);
    assert.deepEqual([of('authority'), of('terms_total', { reason: 'stopped' })], [0, stops]);
    await started(elector);
  }
});

test('the slots of a member are counted by outcome, and the newest one stays to be seen', async () => {
  const storage = await newGroup();
  const slot = Date.now() - (Date.now() % 60_000);
  putRecord(storage, slotRecord(slot - 10 * 60_000));
  const elector = member(storage, LONG);
  for (const [minutes, job] of [[5, () => {}], [5, () => {}], [4, () => Promise.reject(new Error('no'))]]) {
    await elector.runScheduled(slot - minutes * 60_000, job, { policy: 'atMostOnce', period: 60_000 });
  }
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
  for (const { of, families } of [parsed(electors.metrics()), await asked(electors)]) {
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

const authorityOf = (group, instance) => `edgelect_authority{group="${group}",instance="${instance}"}`;
const renews = (group) => `edgelect_store_requests_total{group="${group}",instance="1",operation="renew",outcome="unknown"}`;
const slotOf = (group, instance) => `edgelect_last_slot_timestamp_seconds{group="${group}",instance="${instance}"}`;
const recordOf = (group) => `edgelect_record_leader{group="${group}",instance="w"}`;

/** Series that are recorded so often, and what each alert tells at a time: of which labels, and in which words, or nothing. */
const ALERTS = {
  'a handover is no alert, a group without a leader is one': ['5s', { [authorityOf('l.json', 'a')]: '1x11 0x60', [authorityOf('l.json', 'b')]: '0x12 1x11 0x48' }, [
    ['1m', 'NotExactlyOneLeader'], ['2m40s', 'NotExactlyOneLeader'],
    ['2m50s', 'NotExactlyOneLeader', { group: 'l.json', severity: 'critical' }, 'l.json has 0 leaders'],
  ]],
  'two leaders of one group are told, not those of two groups': ['5s', { [authorityOf('a', '1')]: '1x40', [authorityOf('a', '2')]: '1x40', [authorityOf('b', '1')]: '1x40' }, [
    ['1m', 'NotExactlyOneLeader', { group: 'a', severity: 'critical' }, 'a has 2 leaders'],
  ]],
  'the slots of minutes 0 to 5 run, and nothing after them; any member that has seen the newest is enough': ['1m', {
    [slotOf('reports.json', 'a')]: '0+60x5 300x20', [slotOf('reports.json', 'b')]: '0x25',
  }, [
    ['7m', 'SlotOverdue'], ['8m', 'SlotOverdue', { group: 'reports.json', severity: 'warning' }, 'The last slot of reports.json is 3m 0s old'],
  ]],
  'one unknown renewal is usual, one a minute is not': ['1m', { [renews('a')]: '0+1x20', [renews('b')]: '0x5 1x15' }, [
    ['10m', 'RenewalsUnknown', { group: 'a', severity: 'warning' }, 'Nobody knows of 10 renewals of a whether they took effect'],
  ]],
  'a member that is down, one with an error for two leases, and a term that ran out': ['15s', {
    'up{job="edgelect",instance="a"}': '0x20', 'edgelect_error{group="g",instance="b"}': '1x20', 'edgelect_error{group="g",instance="c"}': '0 1 0x18',
    'edgelect_terms_total{group="g",reason="expired"}': '0 1x19', [recordOf('worker')]: '0x20',
  }, [
    ['2m', 'Down', { job: 'edgelect', instance: 'a', severity: 'warning' }, 'a shows no metrics'],
    ['2m', 'Error', { group: 'g', instance: 'b', severity: 'warning' }, 'g has an error at b'],
    ['2m', 'TermsExpired', { group: 'g', severity: 'warning' }, 'g has lost terms that ran out'], ['2m', 'NotExactlyOneLeader'],
  ]],
  'a group of Workers alone whose record has no leader is told, not one of slots or one that members tell of': ['30s', {
    [recordOf('ticks')]: '1x3 0 1x3 0x12', [recordOf('slots')]: '0x20', [slotOf('slots', 'w')]: '0x20', [recordOf('mixed')]: '0x20', [authorityOf('mixed', 'a')]: '1x20',
  }, [
    ['5m', 'RecordWithoutLeader'], ['6m30s', 'RecordWithoutLeader', { group: 'ticks', severity: 'critical' }, 'Nobody leads ticks'],
  ]],
};

const noTool = fs.existsSync(PROMTOOL) ? false : 'promtool is not here: js/tools/setup.mjs unpacks it on Debian and Ubuntu';
test('the alerts say what they promise, tried against recorded series', { skip: noTool }, () => {
  const rules = fs.readFileSync(inRoot('docs/alerts.yml'), 'utf8');
  const told = ([eval_time, name, exp_labels, summary]) => {
    const [, description] = new RegExp(`alert: Edgelect${name}\n[^]*?description: '(.*)'`).exec(rules);
    return { eval_time, alertname: `Edgelect${name}`, exp_alerts: exp_labels ? [{ exp_labels, exp_annotations: { summary, description } }] : [] };
  };
  const tests = Object.entries(ALERTS).map(([name, [interval, recorded, alerts]]) => ({
    name, interval, input_series: Object.entries(recorded).map(([series, values]) => ({ series, values })), alert_rule_test: alerts.map(told),
  }));
  const file = `${newFolder('alerts')}/alerts.test.yml`;
  fs.writeFileSync(file, JSON.stringify({ rule_files: [inRoot('docs/alerts.yml')], evaluation_interval: '5s', tests }));
  execFileSync(PROMTOOL, ['test', 'rules', file], { stdio: 'pipe' });
});
