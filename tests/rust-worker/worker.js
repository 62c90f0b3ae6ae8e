// The entry of the example's Worker, in place of the one that worker-build writes.
import module from '../../build/rust-worker/rust_worker_bg.wasm';
import { fetch, initSync, scheduled } from '../../build/rust-worker/rust_worker.js';

initSync({ module });

export default { fetch, scheduled };
