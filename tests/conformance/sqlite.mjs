// The SQLite storage of the examples on a file of its own, for the list and the histories in wasm; Node 24 only.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { SqliteStorage } from '../../examples/sqlite-storage/sqlite-storage.mjs';

export const open = async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-sqlite-'));
  const storage = new SqliteStorage(path.join(folder, 'conformance.sqlite'));
  const close = async () => {
    storage.close();
    fs.rmSync(folder, { recursive: true });
  };
  return { storage, close };
};
