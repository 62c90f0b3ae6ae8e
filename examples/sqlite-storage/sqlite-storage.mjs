import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';

/** One byte more than a record may have: what is larger is known by it, and read no further. */
const LIMIT = 65_537;

/** https://www.sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/** Both times are the machine's, read by SQLite within the statement: every process that shares the file runs on this machine. */
const NOW = "cast(unixepoch('subsec') * 1000 as integer)";

/** A storage for electors, in a SQLite file that the processes of one machine share. Needs Node 22.13 or newer. */
export class SqliteStorage {
  #database;
  #read;
  #create;
  #update;

  /** `busyTimeout` is how long to wait for another process's write, in milliseconds; the event loop stands still meanwhile. */
  constructor(path, { busyTimeout = 1000 } = {}) {
    this.#database = new DatabaseSync(path, { timeout: busyTimeout });
    this.#useWal(busyTimeout);
    // FULL, because a write that was answered must outlive a power cut: a token that falls back is no fencing token.
    this.#database.exec(`
      pragma synchronous = full;
      create table if not exists edgelect_records (
        key text primary key, etag text not null, written integer not null, body blob not null
      ) strict, without rowid;`);
    // Of an empty body `substr` makes null.
    this.#read = this.#database.prepare(
      `select coalesce(substr(body, 1, ${LIMIT}), x'') as body, etag, written as lastModified, ${NOW} as date from edgelect_records where key = ?`,
    );
    this.#create = this.#database.prepare(
      `insert into edgelect_records (key, etag, written, body) values (?, ?, ${NOW}, ?) on conflict do nothing`,
    );
    this.#update = this.#database.prepare(
      `update edgelect_records set etag = ?, written = ${NOW}, body = ? where key = ? and etag = ?`,
    );
  }

  // Of processes that make a new file at once all but one are refused this, and SQLite does not wait here by itself.
  #useWal(busyTimeout) {
    const untilMs = Date.now() + busyTimeout;
    for (;;) {
      try {
        return void this.#database.exec('pragma journal_mode = wal');
      } catch (error) {
        if ((error.errcode & 0xff) !== SQLITE_BUSY || Date.now() >= untilMs) throw error;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }

  get(key) {
    return this.#read.get(key) ?? null;
  }

  // Each statement is a transaction of its own: SQLite looks at the condition and writes under one lock of the file. What it
  // throws (SQLITE_BUSY, a full disk) is thrown on: the elector then reads back what became of it.
  putIfMatch(key, body, etag) {
    const next = `"${randomUUID()}"`;
    const { changes } = etag === null ? this.#create.run(key, next, body) : this.#update.run(next, body, key, etag);
    return changes === 1 ? { etag: next } : null;
  }

  close() {
    this.#database.close();
  }
}
