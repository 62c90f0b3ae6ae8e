// The demo's two outputs: a table that is redrawn on a terminal, a line for each change anywhere else.
import Table from 'cli-table3';
import { createLogUpdate } from 'log-update';
import { underWay } from '../tools/run.mjs';

const REDRAW_MS = 500;
const NEWS_LINES = 8;
const ROLE_COLOURS = { leader: '\u001b[1;32m', killed: '\u001b[31m', parked: '\u001b[33m', compiling: '\u001b[33m' };

export class Screen {
  #members = [];
  #startMs = Date.now();
  #news = [];
  #known = new Map();
  #update;
  #timer;

  constructor({ title, stream = process.stdout }) {
    this.title = title;
    this.stream = stream;
    this.#update = stream.isTTY ? createLogUpdate(stream, { showCursor: true }) : undefined;
  }

  start(members) {
    this.#members = members;
    this.#timer = setInterval(() => this.draw(), this.#update ? REDRAW_MS : 100);
  }

  say = (text) => {
    const line = `${((Date.now() - this.#startMs) / 1000).toFixed(1).padStart(6)} s  ${text}`;
    if (this.#update === undefined) return void this.stream.write(`${line}\n`);
    this.#news.push(line);
    if (this.#news.length > NEWS_LINES) this.#news.shift();
    this.draw();
  };

  draw() {
    if (this.#update === undefined) return this.#changes();
    const table = new Table({
      head: ['member', 'runtime', 'role', 'term', 'authority', 'requests'],
      colAligns: ['left', 'left', 'left', 'right', 'right', 'right'],
      style: { head: ['bold'], border: ['grey'], compact: true },
    });
    for (const member of this.#members) table.push(row(member));
    const members = this.#members.length === 0 ? 'starting the store' : table.toString();
    const width = (this.stream.columns ?? 80) - 1;
    const below = [...this.#news, ...underWay().map((line) => line.slice(0, width)), 'Ctrl-C ends it.'];
    this.#update([this.title, members, ...below].join('\n'));
  }

  end() {
    clearInterval(this.#timer);
    if (this.#update === undefined) return;
    this.draw();
    this.#update.done();
  }

  #changes() {
    for (const { name, title, role, term, requests } of this.#members) {
      const state = role === 'leader' ? `leader, term ${term}` : role;
      if (this.#known.get(name) === state) continue;
      this.#known.set(name, state);
      this.say(`${title}: ${state}, ${requests} requests so far`);
    }
  }
}

function row({ name, runtime, role, term, remainingMs, requests }) {
  const colour = ROLE_COLOURS[role];
  return [
    name,
    runtime,
    colour === undefined ? role : `${colour}${role}\u001b[0m`,
    term ?? '',
    remainingMs === undefined ? '' : `${(Math.max(remainingMs, 0) / 1000).toFixed(1)} s`,
    requests,
  ];
}
