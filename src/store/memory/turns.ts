import { isOpen, type OpenTurn, type OpenTurnRecord, type Records, type TurnRecord } from "#store/rules/records.ts";
import { DueTimes } from "./due-times.ts";
import { Ordered } from "./ordered.ts";
import { type Packed, pack, unpack } from "./packed.ts";
import type { Sessions } from "./sessions.ts";
import { type Scale, weighTurn } from "./weights.ts";

/** Turns that can be claimed, of those that somebody waits for and of the others. */
type Lanes = { waited: Ordered<number, string>; unwaited: Ordered<number, string> };

export class Turns {
  readonly #scale: Scale;
  readonly #sessions: Sessions;
  /** Those that have ended are packed. */
  readonly #byId = new Ordered<string, OpenTurnRecord | Packed>();
  readonly #open = new Map<string, OpenTurnRecord>();
  readonly #ready = new Map<string, Lanes>();
  readonly #due = new DueTimes();
  readonly #leases = new DueTimes();

  constructor(scale: Scale, sessions: Sessions) {
    this.#scale = scale;
    this.#sessions = sessions;
  }

  readonly records: Records["turns"] = {
    find: (turnId) => this.#find(turnId),
    put: (record) => {
      const { turnId } = record.turn;
      const before = this.#find(turnId);
      this.#byId.set(turnId, isOpen(record) ? record : pack(record));
      if (isOpen(record)) this.#open.set(turnId, record);
      this.#move(record, before, record);
    },
    delete: (record) => {
      const before = this.#find(record.turn.turnId);
      if (before) this.#move(before, before, undefined);
      this.#byId.delete(record.turn.turnId);
    },
    open: (agent) => [...this.#open.values()].filter(({ turn }) => agent === undefined || turn.agent === agent),
    before: (turnId, limit) => this.#byId.before(turnId, limit).map(unpack<TurnRecord>),
    readyAgents: () => [...this.#ready.keys()],
    firstReady: (agent, waited) => {
      const turnId = this.#ready.get(agent)?.[waited ? "waited" : "unwaited"].first();
      return turnId === undefined ? undefined : this.#open.get(turnId);
    },
    dueBy: (time) => this.#all(this.#due.by(time)),
    nextDueAt: () => this.#due.next(),
    leaseEnded: (time) => this.#all(this.#leases.by(time)),
  };

  #find(turnId: string): TurnRecord | undefined {
    const open = this.#open.get(turnId);
    if (open) return open;
    const kept = this.#byId.get(turnId);
    return kept === undefined ? undefined : unpack<TurnRecord>(kept);
  }

  #all(turnIds: readonly string[]): OpenTurnRecord[] {
    return turnIds.flatMap((turnId) => this.#open.get(turnId) ?? []);
  }

  /** Keeps what is told of a turn elsewhere: its weight, its place in the queue, and when it can be claimed. */
  #move({ turn: { turnId, agent }, ordinal, place }: TurnRecord, from?: TurnRecord, to?: TurnRecord): void {
    this.#scale.weigh(from ? weighTurn(from) : 0, to ? weighTurn(to) : 0);
    const [before, after] = [from?.open, to?.open];
    if (before || after) this.#sessions.setPlace(ordinal, place, to && isOpen(to) ? to : undefined);
    if (before && !after) this.#open.delete(turnId);
    this.#due.move(turnId, before?.dueAt, after?.dueAt);
    this.#leases.move(turnId, before?.lease?.endsAt, after?.lease?.endsAt);
    if (before?.readyOrder === after?.readyOrder) return;
    if (before?.readyOrder !== undefined) this.#leaveLane(agent, before, before.readyOrder);
    if (after?.readyOrder !== undefined) this.#laneOf(agent, after).set(after.readyOrder, turnId);
  }

  #laneOf(agent: string, { waited }: OpenTurn): Ordered<number, string> {
    const lanes = this.#ready.get(agent) ?? { waited: new Ordered(), unwaited: new Ordered() };
    this.#ready.set(agent, lanes);
    return lanes[waited ? "waited" : "unwaited"];
  }

  #leaveLane(agent: string, open: OpenTurn, order: number): void {
    this.#laneOf(agent, open).delete(order);
    const lanes = this.#ready.get(agent);
    if (lanes && lanes.waited.size + lanes.unwaited.size === 0) this.#ready.delete(agent);
  }
}
