// The members of a run of slots as their starter sees them: processes that take triggers and report them.
import { endProcess, killGroup } from '../../js/tools/cleanup.mjs';
import { keepTail } from '../../js/tools/run.mjs';
import { startSpeaking } from '../../js/tools/speaking.mjs';

const TAIL_LINES = 10;

export class SlotMember {
  isUp = false;
  isStopped = false;
  /** The triggers that it has not reported. */
  waiting = new Set();
  #child;
  #description;
  #hear;
  #tail = keepTail(TAIL_LINES);

  /** `hear(message)` gets what it says, `broke(sentence)` what it should not have. */
  constructor({ name, command, args, env }, { hear, broke }) {
    this.name = name;
    this.#description = { command, args, env };
    this.#hear = hear;
    this.broke = broke;
  }

  /** Whether it can be reached, stopped or not. */
  get alive() {
    return this.#child !== undefined && this.isUp;
  }

  start() {
    const onEnd = (how) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.broke([`${this.name} ended with ${how}`, ...this.#tail.lines].join('\n  '));
    };
    const child = startSpeaking(this.#description, { onLine: (line) => this.#heard(child, line), onEnd, tail: this.#tail });
    this.#child = child;
  }

  send(trigger) {
    this.waiting.add(trigger.id);
    this.#child.stdin.write(`${JSON.stringify(trigger)}\n`);
  }

  /** SIGKILL: no handler runs, nothing is released. Returns the triggers that end with it. */
  kill() {
    const child = this.#child;
    this.#child = undefined;
    this.isUp = this.isStopped = false;
    const ended = [...this.waiting];
    this.waiting.clear();
    if (child !== undefined) void endProcess(child);
    return ended;
  }

  stop() {
    killGroup(this.#child.pid, 'SIGSTOP');
    this.isStopped = true;
  }

  goOn() {
    killGroup(this.#child.pid, 'SIGCONT');
    this.isStopped = false;
  }

  #heard(child, line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return this.broke(`${this.name} said: ${line}`);
    }
    // Lines that were still in the pipe of a killed member are true, but no longer news of its state.
    if (this.#child === child) {
      if (message.event === 'up') this.isUp = true;
      if (message.event === 'report') this.waiting.delete(message.id);
    }
    this.#hear(message);
  }
}
