// The package's own MemoryStorage, for the conformance list in wasm.
import { MemoryStorage } from '../../js/storage.js';

export const open = async () => ({ storage: new MemoryStorage(), close: async () => {} });
