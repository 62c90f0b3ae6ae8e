import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test("these tests run on the machine's own Node, not on the one that npm puts in front of it", () => {
  const own = execFileSync(process.env.npm_node_execpath ?? process.execPath, ['-p', 'process.version'], { encoding: 'utf8' });
  assert.equal(process.version, own.trim());
});
