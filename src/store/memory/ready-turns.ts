import { Fifo } from "./fifo.ts";
import type { TurnRow } from "./rows.ts";

type Lane = "waited" | "unwaited";
type Ready = { turn: TurnRow; order: number };
type Lanes = Record<Lane, Fifo<Ready>>;

/** Turns that can be claimed, by agent: those that somebody waits for by turns with the others, in each kind the oldest of all first. */
export class ReadyTurns {
  #agents = new Map<string, Lanes>();
  #delayed: { turn: TurnRow; due: number }[] = [];
  #orders = 0;
  #next: Lane = "waited";

  push(turn: TurnRow): void {
    let lanes = this.#agents.get(turn.agent);
    if (!lanes) {
      lanes = { waited: new Fifo(), unwaited: new Fifo() };
      this.#agents.set(turn.agent, lanes);
    }
    lanes[laneOf(turn)].push({ turn, order: ++this.#orders });
  }

  pushLater(turn: TurnRow, due: number): void {
    const at = this.#delayed.findIndex((other) => other.due > due);
    this.#delayed.splice(at < 0 ? this.#delayed.length : at, 0, { turn, due });
  }

  /** Takes up to `free` turns, at most `freeOf(agent)` of each agent. */
  take(free: number, freeOf: (agent: string) => number): TurnRow[] {
    const taken: TurnRow[] = [];
    const agents: { lanes: Lanes; free: number }[] = [];
    for (const [agent, lanes] of this.#agents) {
      if (headOf(lanes.waited) ?? headOf(lanes.unwaited)) agents.push({ lanes, free: freeOf(agent) });
      // An agent comes back with its next turn: one that left the configuration would stay for good.
      else this.#agents.delete(agent);
    }
    while (taken.length < free) {
      const turn = this.#shiftOldest(agents, this.#next) ?? this.#shiftOldest(agents, otherThan(this.#next));
      if (!turn) break;
      this.#next = otherThan(laneOf(turn));
      taken.push(turn);
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

  #shiftOldest(agents: { lanes: Lanes; free: number }[], lane: Lane): TurnRow | undefined {
    let oldest: { lanes: Lanes; free: number } | undefined;
    let order = Infinity;
    for (const agent of agents) {
      const head = agent.free > 0 ? headOf(agent.lanes[lane]) : undefined;
      if (head && head.order < order) {
        oldest = agent;
        order = head.order;
      }
    }
    if (!oldest) return undefined;
    oldest.free--;
    return oldest.lanes[lane].shift()?.turn;
  }
}

const laneOf = ({ waited }: TurnRow): Lane => (waited ? "waited" : "unwaited");
const otherThan = (lane: Lane): Lane => (lane === "waited" ? "unwaited" : "waited");

/** The first of a lane. Turns that were cancelled while they were ready leave no gap in a queue: they are skipped here. */
const headOf = (lane: Fifo<Ready>): Ready | undefined => {
  for (let head = lane.peek(); head; head = lane.peek()) {
    if (head.turn.status === "queued") return head;
    lane.shift();
  }
  return undefined;
};
