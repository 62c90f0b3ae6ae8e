// A line that is drawn again each second on a terminal, a new one now and then elsewhere.
import { createLogUpdate } from 'log-update';

const PLAIN_EVERY_MS = 10_000;

export class Progress {
  #line;
  #everyMs;
  #update = process.stdout.isTTY ? createLogUpdate(process.stdout, { showCursor: true }) : undefined;
  #timer;

  constructor(line, plainEveryMs = PLAIN_EVERY_MS) {
    this.#line = line;
    this.#everyMs = this.#update ? 1_000 : plainEveryMs;
  }

  start() {
    const show = this.#update ?? ((line) => console.log(line));
    this.#timer = setInterval(() => show(this.#line()), this.#everyMs);
  }

  end() {
    clearInterval(this.#timer);
    this.#update?.clear();
  }
}
