import type { OpenTurn, OpenTurnRecord } from "#store/rules/records.ts";
import { DueTimes } from "./due-times.ts";
import { Ordered } from "./ordered.ts";
import type { Queues } from "./queues.ts";

/** Turns that can be claimed, of those that somebody waits for and of the others. */
type Lanes = { waited: Ordered<number, string>; unwaited: Ordered<number, string> };

/** The turns that have not ended, with their places in the queues of their sessions and the times at which they can be claimed. */
export class OpenTurns {
  readonly #queues: Queues;
  readonly #byId = new Map<string, OpenTurnRecord>();
  readonly #ready = new Map<string, Lanes>();
  readonly #due = new DueTimes();
  readonly #leases = new DueTimes();

  constructor(queues: Queues) {
    this.#queues = queues;
  }

  find(turnId: string): OpenTurnRecord | undefined {
    return this.#byId.get(turnId);
  }

  put(record: OpenTurnRecord): void {
    const { turnId } = record.turn;
    this.#move(record, this.#byId.get(turnId)?.open, record.open);
    this.#byId.set(turnId, record);
    this.#queues.set(record.ordinal, record.place, record);
  }

  /** The turn has ended, or is gone. */
  delete(turnId: string): void {
    const record = this.#byId.get(turnId);
    if (!record) return;
    this.#move(record, record.open, undefined);
    this.#byId.delete(turnId);
    this.#queues.set(record.ordinal, record.place, undefined);
  }

  list = (agent?: string): OpenTurnRecord[] =>
    [...this.#byId.values()].filter(({ turn }) => agent === undefined || turn.agent === agent);

  readyAgents = (): string[] => [...this.#ready.keys()];

  firstReady = (agent: string, waited: boolean): OpenTurnRecord | undefined => {
    const turnId = this.#ready.get(agent)?.[waited ? "waited" : "unwaited"].first();
    return turnId === undefined ? undefined : this.#byId.get(turnId);
  };

  dueBy = (time: number): OpenTurnRecord[] => this.#all(this.#due.by(time));

  nextDueAt = (): number | undefined => this.#due.next();

  leaseEnded = (time: number): OpenTurnRecord[] => this.#all(this.#leases.by(time));

  #all(turnIds: readonly string[]): OpenTurnRecord[] {
    return turnIds.flatMap((turnId) => this.#byId.get(turnId) ?? []);
  }

  #move({ turn: { turnId, agent } }: OpenTurnRecord, before: OpenTurn | undefined, after: OpenTurn | undefined): void {
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
