// The package's own MemoryStorage, for the list and the histories in wasm.
import { MemoryStorage } from '../../js/storage.js';

export const open = async () => ({ storage: new MemoryStorage(), close: async () => {} });
