// Lines for operators, on standard error: as text, or one JSON object each.
import { wrongOption } from './errors.js';

const LEVELS = ['error', 'warn', 'info', 'debug'];
const FORMATS = ['text', 'json'];

const oneOf = (name, value, words) => {
  if (words.includes(value)) return value;
  throw wrongOption(name, value, `must be one of ${words.join(', ')}`);
};

export class Log {
  #json;
  /** How many of the levels are shown. */
  #shown;

  /** Without a `logLevel` warnings are shown where somebody `warns`. */
  constructor({ log = 'text', logLevel, warns }) {
    this.#json = oneOf('log', log, FORMATS) === 'json';
    this.#shown = logLevel === undefined ? (warns ? 2 : 0) : LEVELS.indexOf(oneOf('logLevel', logLevel, LEVELS)) + 1;
  }

  tell(level, { group, event, term, message }) {
    if (LEVELS.indexOf(level) >= this.#shown) return;
    // What a storage threw may hold anything: it stays one line, and moves no cursor.
    const plain = (text) => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
    try {
      const time = new Date().toISOString();
      console.warn(this.#json ? JSON.stringify({ time, level, group, event, term, message: plain(message) }) : plain(`edgelect: group ${group}: ${message}`));
    } catch {
      // Nobody is left to tell.
    }
  }
}
