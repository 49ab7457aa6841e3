import type { EventStatus } from "#store/store.ts";
import {
  DEAD,
  type EventBody,
  type EventRow,
  type EventState,
  GONE,
  HANDLED,
  statusOf,
  WAITS,
  type WaitingBatch,
} from "../event-codec.ts";
import { type EventBatch, type EventPlace, EventRows } from "./event-rows.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { TurnRow } from "./rows.ts";
import type { TotalsRow } from "./totals.ts";

/** What an event costs beside its body. */
const EVENT_BYTES = 120;

/** Of so many that were read as waiting their places are remembered. */
const MOST_READ = 1_000;

/** An event as who ends it needs it. */
export type EventRef = {
  readonly ordinal: number;
  readonly eventId: string;
  readonly attempts: number;
  readonly deliveryId: string | null;
};
export type Wanted = { agent?: string; status?: EventStatus; limit: number };

/** All system events. */
export class EventTable {
  readonly #totals: TotalsRow;
  readonly #ordinals: Ordinals;
  readonly #rows: EventRows;
  /** How many of each agent have not ended, by row; in order. */
  readonly #open = new Map<string, Map<number, number>>();
  /** Those that a turn works on, by place. The turn keeps them: writing it here, too, would cost more than all else. */
  readonly #taken = new Map<number, string>();
  /** Those that were read last as waiting: they are what the next turn takes. */
  readonly #read = new Map<string, EventPlace>();

  constructor({ db, totals, agents }: Parts, turns: readonly TurnRow[]) {
    this.#totals = totals;
    this.#ordinals = new Ordinals(db, "events");
    this.#rows = new EventRows(db);
    for (const batch of EventRows.open(db)) {
      for (const [at, { state }] of batch.states.entries()) if (state === WAITS) this.#count({ batch, at }, 1);
    }
    for (const [agent, rows] of this.#open) {
      for (const count of rows.values()) agents.of(agent).waitingEvents += count;
    }
    for (const { events, turnId, agent } of turns) {
      for (const ordinal of events?.ordinals ?? []) this.#taken.set(ordinal, turnId);
      agents.of(agent).waitingEvents -= events?.ordinals.length ?? 0;
    }
  }

  /** Deliveries of those that have not ended. */
  openDeliveries(): string[] {
    const found: string[] = [];
    const firsts = new Set([...this.#open.values()].flatMap((rows) => [...rows.keys()]));
    for (const first of firsts) {
      const { states, deliveryIds } = this.#rows.at(first) as EventBatch;
      for (const [at, deliveryId] of deliveryIds.entries())
        if (deliveryId !== null && states[at]?.state === WAITS) found.push(deliveryId);
    }
    return found;
  }

  /** The newest place that was given. */
  get last(): number {
    return this.#ordinals.last;
  }

  /** Answers its place. `body` is JSON already. */
  add(eventId: string, agent: string, deliveryId: string | null, body: string, state?: EventState): number {
    const ordinal = this.#ordinals.next();
    const batch = this.#rows.add(ordinal, eventId, agent, deliveryId, body, state);
    this.#count({ batch, at: batch.ids.length - 1 }, 1);
    this.#totals.addBytes(EVENT_BYTES + Buffer.byteLength(body));
    this.#totals.counts.eventsQueued++;
    return ordinal;
  }

  read(eventId: string): EventRow | undefined {
    const place = this.#rows.find(eventId);
    return place && this.#rowOf(place, this.#rows.bodiesOf(place.batch));
  }

  statusOf(eventId: string): EventStatus | undefined {
    const place = this.#rows.find(eventId);
    return place && statusOf(stateOf(place).state);
  }

  /** Those of an agent that wait, oldest first, with about so much text at most; and the place of the last, if there may be more. */
  waiting(
    agent: string,
    { after, through, limit, length }: { after: number; through: number; limit: number; length: number },
  ): { batches: WaitingBatch[]; last: number | undefined } {
    const batches: WaitingBatch[] = [];
    if (this.#read.size > MOST_READ) this.#read.clear();
    let [count, texts] = [limit, length];
    for (const { batch, at: all } of this.#waiting(agent, after, through)) {
      const some = all.slice(0, count);
      const [head, body, states] = this.#rows.textsOf(batch);
      batches.push([batch.first, head, body, states, some]);
      for (const at of some) this.#read.set(batch.ids[at] as string, { batch, at });
      count -= some.length;
      texts -= body.length;
      if (count === 0 || texts <= 0) return { batches, last: batch.first + (some.at(-1) as number) };
    }
    return { batches, last: undefined };
  }

  /** Places of the oldest of an agent that wait. */
  oldest(agent: string, limit: number): number[] {
    const found: number[] = [];
    for (const { batch, at } of this.#waiting(agent, 0, this.last)) {
      for (const one of at) if (found.length < limit) found.push(batch.first + one);
      if (found.length === limit) break;
    }
    return found;
  }

  /** Of about so many below a place those that match, newest first, at most `limit`; and the place where to go on, 0 at the end. */
  below(place: number, { agent, status, limit }: Wanted, look: number): { rows: EventRow[]; next: number } {
    const rows: EventRow[] = [];
    let next = place;
    for (let looked = 0; looked < look; ) {
      const firsts = this.#rows.below(next, 8);
      for (const first of firsts) {
        const batch = this.#rows.at(first) as EventBatch;
        const found: EventPlace[] = [];
        for (let at = Math.min(batch.ids.length, next - first) - 1; at >= 0; at--) {
          const { state } = batch.states[at] as EventState;
          if (state === GONE || (status !== undefined && statusOf(state) !== status)) continue;
          if (agent === undefined || batch.agents[at] === agent) found.push({ batch, at });
        }
        looked += batch.ids.length;
        next = first;
        if (found.length === 0) continue;
        const bodies = this.#rows.bodiesOf(batch);
        for (const one of found) {
          rows.push(this.#rowOf(one, bodies));
          if (rows.length === limit) return { rows, next: ordinalOf(one) };
        }
      }
      if (firsts.length === 0) return { rows, next: 0 };
    }
    return { rows, next };
  }

  /** Places of these events when all of them wait, for this agent, each once; else undefined. */
  findFree(eventIds: readonly string[], agent: string): number[] | undefined {
    const ordinals: number[] = [];
    for (const eventId of eventIds) {
      const place = this.#readPlace(eventId) ?? this.#rows.find(eventId);
      if (!place || stateOf(place).state !== WAITS || place.batch.agents[place.at] !== agent) return undefined;
      if (this.#taken.has(ordinalOf(place))) return undefined;
      ordinals.push(ordinalOf(place));
    }
    ordinals.sort((a, b) => a - b);
    return ordinals.some((ordinal, n) => ordinal === ordinals[n - 1]) ? undefined : ordinals;
  }

  take(ordinals: readonly number[], turnId: string): void {
    for (const ordinal of ordinals) this.#taken.set(ordinal, turnId);
  }

  giveBack(ordinals: readonly number[], turnId: string, reason: string): EventRef[] {
    return this.#become(ordinals, ({ attempts }) => {
      return { state: WAITS, attempts: attempts + 1, endedAt: null, turnId, reason };
    });
  }

  handled(ordinals: readonly number[], turnId: string, now: number): EventRef[] {
    this.#totals.counts.eventsQueued -= ordinals.length;
    return this.#become(ordinals, ({ attempts, reason }) => {
      return { state: HANDLED, attempts, endedAt: now, turnId, reason };
    });
  }

  dead(ordinals: readonly number[], reason: string, now: number): EventRef[] {
    this.#totals.counts.eventsQueued -= ordinals.length;
    this.#totals.counts.eventsDead += ordinals.length;
    return this.#become(ordinals, ({ attempts, turnId }) => {
      return { state: DEAD, attempts, endedAt: now, turnId, reason };
    });
  }

  /** Queues a dead one again, behind all others; answers its agent. Undefined when it is none. */
  requeue(eventId: string): string | undefined {
    const place = this.#rows.find(eventId);
    if (!place || stateOf(place).state !== DEAD) return undefined;
    const { turnId, reason } = stateOf(place);
    const agent = place.batch.agents[place.at] as string;
    const deliveryId = place.batch.deliveryIds[place.at] ?? null;
    const body = this.#remove(place.batch, [place.at])[0] as string;
    this.add(eventId, agent, deliveryId, body, { state: WAITS, attempts: 0, endedAt: null, turnId, reason });
    return agent;
  }

  /** Lets go what ended before a time, about so many at most. Answers how many those were. */
  forgetBefore(time: number, limit: number): number {
    let gone = 0;
    while (gone < limit) {
      const batch = this.#rows.endedBefore(time);
      if (!batch) break;
      const ended: number[] = [];
      for (const [at, { state, endedAt }] of batch.states.entries())
        if ((state === HANDLED || state === DEAD) && (endedAt as number) < time) ended.push(at);
      this.#remove(batch, ended);
      gone += ended.length;
    }
    return gone;
  }

  flush(): void {
    this.#ordinals.flush();
    this.#rows.flush();
  }

  /** Answers what they held, as JSON. */
  #remove(batch: EventBatch, places: readonly number[]): string[] {
    this.#totals.counts.eventsDead -= places.filter((at) => batch.states[at]?.state === DEAD).length;
    const bodies = this.#rows.remove(batch, places).map((body) => JSON.stringify(body));
    for (const body of bodies) this.#totals.addBytes(-EVENT_BYTES - Buffer.byteLength(body));
    return bodies;
  }

  /** Rows of an agent with the places in them that wait and that no turn works on. */
  *#waiting(agent: string, after: number, through: number): Generator<{ batch: EventBatch; at: number[] }> {
    for (const first of this.#open.get(agent)?.keys() ?? []) {
      if (first > through) return;
      const batch = this.#rows.at(first) as EventBatch;
      const at: number[] = [];
      for (let n = Math.max(0, after - first + 1); n < batch.ids.length && first + n <= through; n++) {
        if (batch.states[n]?.state === WAITS && batch.agents[n] === agent && !this.#taken.has(first + n)) at.push(n);
      }
      if (at.length > 0) yield { batch, at };
    }
  }

  #readPlace(eventId: string): EventPlace | undefined {
    const place = this.#read.get(eventId);
    const batch = place && this.#rows.at(place.batch.first);
    return place && batch?.ids[place.at] === eventId ? { batch, at: place.at } : undefined;
  }

  /** No turn works on them any more, and they become otherwise: those that were alike still are. */
  #become(ordinals: readonly number[], how: (before: EventState) => EventState): EventRef[] {
    const become = new Map<EventState, EventState>();
    const refs: EventRef[] = [];
    let batch: EventBatch | undefined;
    for (const ordinal of ordinals) {
      this.#taken.delete(ordinal);
      if (!batch || ordinal >= batch.first + batch.ids.length || ordinal < batch.first) {
        batch = this.#rows.containing(ordinal) as EventBatch;
      }
      const place = { batch, at: ordinal - batch.first };
      const before = stateOf(place);
      const after = become.get(before) ?? how(before);
      become.set(before, after);
      this.#rows.set(place, after);
      if (after.state !== WAITS) this.#count(place, -1);
      const eventId = batch.ids[place.at] as string;
      refs.push({ ordinal, eventId, attempts: after.attempts, deliveryId: batch.deliveryIds[place.at] ?? null });
    }
    return refs;
  }

  #count({ batch, at }: EventPlace, by: 1 | -1): void {
    const agent = batch.agents[at] as string;
    const rows = this.#open.get(agent) ?? new Map<number, number>();
    if (rows.size === 0) this.#open.set(agent, rows);
    const count = (rows.get(batch.first) ?? 0) + by;
    if (count > 0) rows.set(batch.first, count);
    else rows.delete(batch.first);
    if (rows.size === 0) this.#open.delete(agent);
  }

  #rowOf({ batch, at }: EventPlace, bodies: readonly (EventBody | 0)[]): EventRow {
    const ordinal = batch.first + at;
    const state = batch.states[at] as EventState;
    const turnId = this.#taken.get(ordinal) ?? state.turnId;
    const [eventId, agent, deliveryId = null] = [
      batch.ids[at] as string,
      batch.agents[at] as string,
      batch.deliveryIds[at],
    ];
    return [ordinal, eventId, agent, deliveryId, { ...state, turnId }, bodies[at] as EventBody];
  }
}

const stateOf = ({ batch, at }: EventPlace): EventState => batch.states[at] as EventState;
const ordinalOf = ({ batch, at }: EventPlace): number => batch.first + at;
