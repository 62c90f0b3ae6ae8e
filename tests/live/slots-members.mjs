// The members of a run of slots as their starter sees them: processes that take triggers and report them.
import { ProcessMember } from '../../js/demo/process-member.mjs';

export class SlotMember extends ProcessMember {
  isStopped = false;
  /** The triggers that it has not reported. */
  waiting = new Set();

  /** `hear(message)` gets what it says, `broke(sentence)` what it should not have. */
  constructor(description, { hear, broke }) {
    const onMessage = (message) => {
      if (message.event === 'report') this.waiting.delete(message.id);
      hear(message);
    };
    const rules = { broken: { push: broke }, ended() {} };
    // How it ended is told already.
    super({ ...description, runtime: 'slots', rules, say: (text) => this.error ?? broke(text), onMessage });
  }

  /** Whether it can be reached, stopped or not. */
  get isUp() {
    return this.alive && this.role !== 'starting';
  }

  send(trigger) {
    this.waiting.add(trigger.id);
    this.tell(JSON.stringify(trigger));
  }

  /** SIGKILL: no handler runs, nothing is released. Returns the triggers that end with it. */
  kill() {
    this.isStopped = false;
    if (this.alive) super.kill();
    return [...this.waiting].filter((id) => this.waiting.delete(id));
  }

  hold(isStopped) {
    this.isStopped = isStopped;
    this.signal(isStopped ? 'SIGSTOP' : 'SIGCONT');
  }
}
