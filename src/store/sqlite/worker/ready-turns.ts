import type { TurnRow } from "./rows.ts";

type Ready = { readonly row: TurnRow; readonly order: number };
/** First in, first out. */
type Lane = { ready: Ready[]; from: number };
type Kind = "waited" | "unwaited";
type Lanes = Record<Kind, Lane>;

/**
 * Turns that can be claimed. What somebody waits for is taken by turns with what nobody waits for, and in each kind what has been ready
 * for longest, whosever it is.
 */
export class ReadyTurns {
  readonly #agents = new Map<string, Lanes>();
  /** Those that were given back with a delay, the soonest first. */
  readonly #delayed: TurnRow[] = [];
  #orders = 0;
  #nextKind: Kind = "waited";

  /** Of turns that were kept, in the order of their coming: the heads of their sessions' queues. */
  constructor(kept: readonly TurnRow[] = []) {
    for (const row of kept) {
      if (row.session.queue[0] !== row || row.status !== "queued") continue;
      if (row.due > 0) this.pushLater(row);
      else this.push(row);
    }
  }

  push(row: TurnRow): void {
    let lanes = this.#agents.get(row.agent);
    if (!lanes) {
      lanes = { waited: { ready: [], from: 0 }, unwaited: { ready: [], from: 0 } };
      this.#agents.set(row.agent, lanes);
    }
    lanes[kindOf(row)].ready.push({ row, order: ++this.#orders });
  }

  /** Pushes it when it is due. */
  pushLater(row: TurnRow): void {
    const at = this.#delayed.findIndex(({ due }) => due > row.due);
    this.#delayed.splice(at < 0 ? this.#delayed.length : at, 0, row);
  }

  /** Makes ready what is due; answers how long until the next is. */
  wake(time: number): number | undefined {
    for (let first = this.#delayed[0]; first && first.due <= time; first = this.#delayed[0]) {
      this.#delayed.shift();
      if (isQueued(first)) this.push(first);
    }
    return this.#delayed[0] && this.#delayed[0].due - time;
  }

  /** Nothing of this agent is ready, so that a new turn passes nobody. */
  isIdle(agent: string): boolean {
    const lanes = this.#agents.get(agent);
    return !lanes || !(headOf(lanes.waited) ?? headOf(lanes.unwaited));
  }

  /** Takes up to `limit`, and of each agent as many as it has free. */
  take(limit: number, free: ReadonlyMap<string, number>): TurnRow[] {
    const taken: TurnRow[] = [];
    const left = new Map(free);
    while (taken.length < limit) {
      const row = this.#shift(this.#nextKind, left) ?? this.#shift(otherThan(this.#nextKind), left);
      if (!row) break;
      this.#nextKind = otherThan(kindOf(row));
      left.set(row.agent, (left.get(row.agent) ?? 0) - 1);
      taken.push(row);
    }
    return taken;
  }

  #shift(kind: Kind, left: ReadonlyMap<string, number>): TurnRow | undefined {
    let oldest: Lane | undefined;
    let order = Infinity;
    for (const [agent, lanes] of this.#agents) {
      const head = headOf(lanes[kind]);
      if (!head || head.order > order || (left.get(agent) ?? 0) <= 0) continue;
      oldest = lanes[kind];
      order = head.order;
    }
    return oldest && shift(oldest).row;
  }
}

const kindOf = ({ waited }: TurnRow): Kind => (waited ? "waited" : "unwaited");
const otherThan = (kind: Kind): Kind => (kind === "waited" ? "unwaited" : "waited");
const isQueued = ({ status, isGone }: TurnRow): boolean => status === "queued" && !isGone;

/** The first that still waits: what was ended meanwhile left its place here. */
const headOf = (lane: Lane): Ready | undefined => {
  for (let head = lane.ready[lane.from]; head; head = lane.ready[lane.from]) {
    if (isQueued(head.row)) return head;
    shift(lane);
  }
  return undefined;
};

const shift = (lane: Lane): Ready => {
  const head = lane.ready[lane.from++] as Ready;
  // Half of it is behind: what is left moves to the front, which costs each a step.
  if (lane.from * 2 > lane.ready.length) {
    lane.ready = lane.ready.slice(lane.from);
    lane.from = 0;
  }
  return head;
};
