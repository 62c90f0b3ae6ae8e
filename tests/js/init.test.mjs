// `edgelect init`: a group is started once, by its name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, S3Storage } from 'edgelect';
import { bucketOptions, variables } from './bucket.mjs';
import { edgelect } from './command.mjs';
import { FAST, leads } from './group.mjs';

const path = () => `leader/${crypto.randomUUID()}.json`;

test('a group that init has started has a leader at once, and is started once only', async () => {
  const lockfilePath = path();
  const first = await edgelect(['init', '--lockfile-path', lockfilePath], { variables });
  assert.deepEqual(first, { code: 0, stdout: `The group ${lockfilePath} is started: its first member leads at once.\n`, stderr: '' });
  const second = await edgelect(['init', '--lockfile-path', lockfilePath], { variables });
  assert.equal(second.code, 3);
  assert.match(second.stderr, /^edgelect: the lease object exists already: [^\n]*\n$/);
  const elector = new Elector({ ...FAST, lockfilePath, storage: new S3Storage(bucketOptions), probe: false });
  await elector.start();
  const began = performance.now();
  await leads(elector);
  assert.ok(performance.now() - began < FAST.leaderTimeout, 'no grace');
  await elector.stop();
});

test('a group without a name, wrong settings and a store that fails are told apart', async () => {
  const unnamed = await edgelect(['init'], { variables: { ...variables, EDGELECT_LOCKFILE_PATH: undefined } });
  assert.deepEqual([unnamed.code, unnamed.stderr], [2, 'edgelect: --lockfile-path = (not set): name the group, by this flag or by EDGELECT_LOCKFILE_PATH.\n']);
  const nameless = await edgelect(['init', '--lockfile-path', path()], { variables: { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' } });
  assert.equal(nameless.code, 2);
  assert.match(nameless.stderr, /EDGELECT_BUCKET.*\nSet it by a flag or a variable: edgelect init --help\.\n$/);
  const closed = await edgelect(['init', '--lockfile-path', path()], { variables: { ...variables, EDGELECT_ENDPOINT: 'http://127.0.0.1:9' } });
  assert.equal(closed.code, 1);
  assert.match(closed.stderr, /^edgelect: S3 bucket .*: no answer: /);
});
