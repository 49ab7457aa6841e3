import {
  agentsOf,
  decodeStates,
  type EventBody,
  type EventHead,
  type EventState,
  encodeHead,
  encodeStates,
  GONE,
  LEFT,
  NEW,
  WAITS,
} from "../event-codec.ts";
import { bytesOf } from "../text.ts";
import type { Database, Rows } from "./database.ts";

/** Events that are kept together, but for what they hold; ordinals follow one another from `first` on. */
export type EventBatch = {
  readonly first: number;
  readonly ids: string[];
  readonly agents: string[];
  readonly deliveryIds: (string | null)[];
  readonly states: EventState[];
  /** How many have not ended. */
  open: number;
};
/** One of them. */
export type EventPlace = { readonly batch: EventBatch; readonly at: number };

type Stored = [first: number, head: string, states: string, open: number];

const WHOLE = `first, ${bytesOf("head")}, ${bytesOf("event_states.body")}, open`;

/** So much goes into one row at most: a turn reads whole rows. */
const MOST_EVENTS = 64;
const MOST_TEXT = 32_768;
/** So many rows are held as they were read last. */
const HELD = 256;
/**
 * Ids grow, by and large. One that is greater than all that came before the last so many rows is found among as many rows; any other has a
 * place of its own in an index.
 */
const ROWS_OF_AN_ID = 64;

/** The rows of all system events: those that are queued together share one, and how they are is written beside it. */
export class EventRows {
  readonly #rows: Rows;
  readonly #states: Rows;
  readonly #places: Rows;
  readonly #whole;
  readonly #body;
  readonly #containing;
  readonly #below;
  readonly #firstWith;
  readonly #holding;
  readonly #place;
  readonly #ended;
  readonly #rewrite;
  readonly #delete: readonly ((values: readonly number[]) => number)[];
  /** What is to become the next row. */
  #next: (EventBatch & { readonly bodies: string[]; length: number }) | undefined;
  readonly #held = new Map<number, EventBatch>();
  readonly #dirty = new Set<EventBatch>();
  /** The greatest ids up to each of the last rows. */
  readonly #tops: string[];

  constructor(db: Database) {
    this.#rows = db.rows("INSERT INTO events (first, top, head, body)", 4);
    this.#states = db.rows("INSERT OR REPLACE INTO event_states (first, open, ended, body)", 4);
    this.#places = db.rows("INSERT OR REPLACE INTO event_places (event_id, first)", 2);
    const stored = `SELECT ${WHOLE} FROM events JOIN event_states USING (first)`;
    this.#whole = db.query(`${stored} WHERE first = ?`);
    this.#body = db.query(`SELECT ${bytesOf("head")}, ${bytesOf("body")} FROM events WHERE first = ?`);
    this.#containing = db.query("SELECT first FROM events WHERE first <= ? ORDER BY first DESC LIMIT 1");
    this.#below = db.query("SELECT first FROM events WHERE first < ? ORDER BY first DESC LIMIT ?");
    this.#firstWith = db.query("SELECT first FROM events WHERE top >= ? ORDER BY top, first LIMIT 1");
    this.#holding = db.query(
      `SELECT first FROM (SELECT first, head FROM events WHERE first >= ? ORDER BY first LIMIT ${ROWS_OF_AN_ID})
      WHERE instr(head, ?) LIMIT 1`,
    );
    this.#place = db.query("SELECT first FROM event_places WHERE event_id = ?");
    this.#ended = db.query("SELECT first FROM event_states WHERE ended < ? ORDER BY ended LIMIT 1");
    this.#rewrite = db.run("UPDATE events SET head = ?, body = ? WHERE first = ?");
    this.#delete = ["events", "event_states", "event_places"].map((table) =>
      db.run(`DELETE FROM ${table} WHERE first = ?`),
    );
    const tops = db.query(`SELECT ${bytesOf("top")} FROM events ORDER BY first DESC LIMIT ${ROWS_OF_AN_ID}`);
    this.#tops = tops
      .all<[string]>([])
      .map(([top]) => top)
      .reverse();
  }

  /** All in which some have not ended, in order. */
  static *open(db: Database): Generator<EventBatch> {
    const open = db.query(`SELECT ${WHOLE} FROM event_states JOIN events USING (first) WHERE open > 0 ORDER BY first`);
    for (const row of open.all<Stored>([])) yield batchOf(row);
  }

  /** Adds an event behind all others; answers its row. `body` is JSON. */
  add(
    ordinal: number,
    eventId: string,
    agent: string,
    deliveryId: string | null,
    body: string,
    state = NEW,
  ): EventBatch {
    let next = this.#next;
    if (
      !next ||
      next.first + next.ids.length !== ordinal ||
      next.ids.length >= MOST_EVENTS ||
      next.length > MOST_TEXT
    ) {
      this.#write();
      next = { first: ordinal, ids: [], agents: [], deliveryIds: [], states: [], open: 0, bodies: [], length: 0 };
      this.#next = next;
      this.#held.set(ordinal, next);
      this.#dirty.add(next);
    }
    next.ids.push(eventId);
    next.agents.push(agent);
    next.deliveryIds.push(deliveryId);
    next.states.push(state);
    next.bodies.push(body);
    next.length += body.length;
    next.open++;
    return next;
  }

  find(eventId: string): EventPlace | undefined {
    this.#write();
    const [first] = this.#firstWith.get<[number]>([eventId]) ?? [];
    if (first !== undefined) {
      const [near] = this.#holding.get<[number]>([first, JSON.stringify(eventId)]) ?? [];
      const found = near === undefined ? undefined : this.#placeIn(near, eventId);
      if (found) return found;
    }
    const [far] = this.#place.get<[number]>([eventId]) ?? [];
    return far === undefined ? undefined : this.#placeIn(far, eventId);
  }

  /** The row that an ordinal is in, or was in. */
  containing(ordinal: number): EventBatch | undefined {
    this.#write();
    const [first] = this.#containing.get<[number]>([ordinal]) ?? [];
    return first === undefined ? undefined : this.at(first);
  }

  at(first: number): EventBatch | undefined {
    const held = this.#held.get(first);
    if (held) return held;
    const row = this.#whole.get<Stored>([first]);
    const batch = row && batchOf(row);
    if (batch) this.#held.set(first, batch);
    return batch;
  }

  /** So many rows that hold ordinals below one, newest first. */
  below(ordinal: number, limit: number): number[] {
    this.#write();
    return this.#below.all<[number]>([ordinal, limit]).map(([first]) => first);
  }

  /** A row as texts: its head, what its events hold, and how they are. */
  textsOf(batch: EventBatch): [head: string, body: string, states: string] {
    this.#write();
    const [head, body] = this.#body.get<[string, string]>([batch.first]) ?? ["[[],[],[]]", "[]"];
    return [head, body, encodeStates(batch.states)];
  }

  bodiesOf(batch: EventBatch): (EventBody | 0)[] {
    return JSON.parse(this.textsOf(batch)[1]) as (EventBody | 0)[];
  }

  /** Events become otherwise. */
  set({ batch, at }: EventPlace, state: EventState): void {
    const wasOpen = batch.states[at]?.state === WAITS;
    batch.states[at] = state;
    batch.open += (state.state === WAITS ? 1 : 0) - (wasOpen ? 1 : 0);
    this.#dirty.add(batch);
  }

  /** The row with what ended first, if that was before a time. */
  endedBefore(time: number): EventBatch | undefined {
    this.flush();
    const [first] = this.#ended.get<[number]>([time]) ?? [];
    return first === undefined ? undefined : this.at(first);
  }

  /** Takes events out of their row; answers what they held. */
  remove(batch: EventBatch, places: readonly number[]): EventBody[] {
    const bodies = this.bodiesOf(batch);
    const removed = places.map((at) => bodies[at] as EventBody);
    for (const at of places) {
      this.set({ batch, at }, LEFT);
      bodies[at] = 0;
      batch.ids[at] = "";
      batch.deliveryIds[at] = null;
    }
    if (batch.states.some(({ state }) => state !== GONE)) {
      this.#rewrite([headOf(batch), JSON.stringify(bodies), batch.first]);
    } else {
      this.#dirty.delete(batch);
      this.#held.delete(batch.first);
      for (const run of this.#delete) run([batch.first]);
    }
    return removed;
  }

  flush(): void {
    this.#write();
    if (this.#dirty.size > 0) {
      for (const { first, open, states } of this.#dirty)
        this.#states.add(first, open, firstEnd(states), encodeStates(states));
      this.#dirty.clear();
      this.#states.flush();
    }
    for (const first of this.#held.keys()) {
      if (this.#held.size <= HELD) break;
      this.#held.delete(first);
    }
  }

  #placeIn(first: number, eventId: string): EventPlace | undefined {
    const batch = this.at(first);
    const at = batch?.ids.indexOf(eventId) ?? -1;
    return batch && at >= 0 ? { batch, at } : undefined;
  }

  /** Writes the row that events were added to. How they are waits for the end of the batch. */
  #write(): void {
    const next = this.#next;
    if (!next) return;
    this.#next = undefined;
    const before = this.#tops.at(-1) ?? "";
    const known = this.#tops.length < ROWS_OF_AN_ID ? "" : (this.#tops[0] as string);
    let top = before;
    for (const eventId of next.ids) {
      if (eventId > top) top = eventId;
      if (eventId <= known) this.#places.add(eventId, next.first);
    }
    this.#tops.push(top);
    if (this.#tops.length > ROWS_OF_AN_ID) this.#tops.shift();
    this.#rows.add(next.first, top, headOf(next), `[${next.bodies.join(",")}]`);
    next.bodies.length = 0;
    this.#rows.flush();
    this.#places.flush();
  }
}

const headOf = ({ ids, agents, deliveryIds }: EventBatch): string => encodeHead(ids, agents, deliveryIds);

const batchOf = ([first, head, states, open]: Stored): EventBatch => {
  const all = JSON.parse(head) as EventHead;
  return { first, ids: all[0], agents: agentsOf(all), deliveryIds: all[2], states: decodeStates(states), open };
};

const firstEnd = (states: readonly EventState[]): number | null => {
  let first: number | null = null;
  for (const { state, endedAt } of states)
    if (state !== GONE && endedAt !== null && (first === null || endedAt < first)) first = endedAt;
  return first;
};
