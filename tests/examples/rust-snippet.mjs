// The Rust that docs/crons.md shows is in the Rust Worker as it stands there.
import fs from 'node:fs';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError } from '../../js/tools/run.mjs';

const [DOCUMENT, SOURCE] = ['docs/crons.md', 'examples/rust-worker/src/lib.rs'];

/** Fails for a block that is not, word for word, in the example, and if there is none. */
export function heldRust() {
  const [document, source] = [DOCUMENT, SOURCE].map((file) => fs.readFileSync(inRoot(file), 'utf8'));
  const blocks = [...document.matchAll(/^```rust\n(.*?)^```$/gms)].map(([, block]) => block);
  if (blocks.length === 0) throw new PlainError(`${DOCUMENT} shows nothing of ${SOURCE}`);
  for (const block of blocks) if (!source.includes(block)) throw new PlainError(`${DOCUMENT} shows what ${SOURCE} has not:\n${block}`);
}
