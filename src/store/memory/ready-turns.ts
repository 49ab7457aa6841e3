import { Fifo } from "./fifo.ts";
import type { TurnRow } from "./rows.ts";

type Lanes = { waited: Fifo<TurnRow>; unwaited: Fifo<TurnRow>; waitedNext: boolean };

/** Turns that can be claimed: by agent, oldest first, those somebody waits for by turns with the others. */
export class ReadyTurns {
  #agents = new Map<string, Lanes>();
  #delayed: { turn: TurnRow; due: number }[] = [];

  push(turn: TurnRow): void {
    let lanes = this.#agents.get(turn.agent);
    if (!lanes) {
      lanes = { waited: new Fifo(), unwaited: new Fifo(), waitedNext: true };
      this.#agents.set(turn.agent, lanes);
    }
    lanes[turn.waited ? "waited" : "unwaited"].push(turn);
  }

  pushLater(turn: TurnRow, due: number): void {
    const at = this.#delayed.findIndex((other) => other.due > due);
    this.#delayed.splice(at < 0 ? this.#delayed.length : at, 0, { turn, due });
  }

  /** Takes up to `free` turns, at most `freeOf(agent)` of each agent, an agent at a time in turn. */
  take(free: number, freeOf: (agent: string) => number): TurnRow[] {
    const taken: TurnRow[] = [];
    const agents = [...this.#agents].map(([agent, lanes]) => ({ lanes, free: freeOf(agent) }));
    for (let found = true; found && taken.length < free; ) {
      found = false;
      for (const agent of agents) {
        if (agent.free < 1 || taken.length >= free) continue;
        const turn = next(agent.lanes);
        if (!turn) continue;
        agent.free--;
        taken.push(turn);
        found = true;
      }
    }
    return taken;
  }

  /** Makes ready what is due at `time`; answers how long until the next is. */
  wake(time: number): number | undefined {
    while (this.#delayed[0] && this.#delayed[0].due <= time) {
      const { turn } = this.#delayed.shift() as { turn: TurnRow };
      if (turn.status === "queued") this.push(turn);
    }
    return this.#delayed[0] && this.#delayed[0].due - time;
  }

  /** Nothing of this agent is ready, so that a new turn passes nobody. */
  isIdle(agent: string): boolean {
    const lanes = this.#agents.get(agent);
    return !lanes || lanes.waited.size + lanes.unwaited.size === 0;
  }
}

const next = (lanes: Lanes): TurnRow | undefined => {
  const first = lanes.waitedNext ? lanes.waited : lanes.unwaited;
  const second = lanes.waitedNext ? lanes.unwaited : lanes.waited;
  const turn = shiftQueued(first) ?? shiftQueued(second);
  if (turn) lanes.waitedNext = !turn.waited;
  return turn;
};

/** Turns that were cancelled while they were ready are skipped here, as they leave no gap in a queue. */
const shiftQueued = (lane: Fifo<TurnRow>): TurnRow | undefined => {
  for (let turn = lane.shift(); turn; turn = lane.shift()) if (turn.status === "queued") return turn;
  return undefined;
};
