// The wasm comes first: who imports this entry alone has no other that loads it.
import './default.js';

export * from '../object-store-lock.js';
