import assert from 'node:assert/strict';
import { test } from 'node:test';

test('these tests run on Node 24', () => assert.equal(process.versions.node.split('.')[0], '24'));
