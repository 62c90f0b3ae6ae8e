#!/usr/bin/env node
// Goes into the package as it is, in front of main.js, which an old Node cannot load.
import { shortfall } from '../needs.cjs';

if (shortfall === undefined) {
  await import('./main.js');
} else {
  console.error(`edgelect: ${shortfall}`);
  process.exitCode = 1;
}
