import type { EventStatus } from "#store/store.ts";
import { DEAD, EVENT_TEXT, type EventText, HANDLED, statesOf, statusOf, WAITS } from "../event-codec.ts";
import type { Rows } from "./database.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { TurnRow } from "./rows.ts";
import type { TotalsRow } from "./totals.ts";

/** What an event costs beside its body: the rest of its row, and its places in three trees. */
const EVENT_BYTES = 220;
const THOSE = "ordinal IN (SELECT value FROM json_each(?))";

/** An event as who ends it needs it. */
type EventRef = readonly [ordinal: number, eventId: string, attempts: number, deliveryId: string | null];
type Place = { ordinal: number; agent: string; status: EventStatus };
export type Wanted = { agent?: string | null; status?: EventStatus; limit: number };

/** All system events. Those of a batch are written together. */
export class EventTable {
  readonly #totals: TotalsRow;
  readonly #ordinals: Ordinals;
  readonly #rows: Rows;
  readonly #byId;
  readonly #placeOf;
  readonly #waiting;
  readonly #oldest;
  readonly #below;
  readonly #slice;
  readonly #found;
  readonly #refs;
  readonly #giveBack;
  readonly #handled;
  readonly #dead;
  readonly #requeue;
  readonly #ended;
  readonly #delete;
  readonly #open;
  /** Those that a turn works on, by place. The turn keeps them: writing it here, too, would cost more than all else. */
  readonly #taken = new Map<number, string>();

  constructor({ db, totals, agents }: Parts, turns: readonly TurnRow[]) {
    this.#totals = totals;
    this.#ordinals = new Ordinals(db, "events");
    this.#rows = db.rows("INSERT INTO events (ordinal, event_id, agent, delivery_id, body)", 5);
    this.#byId = db.query(`SELECT ordinal, ${EVENT_TEXT} FROM events WHERE event_id = ?`);
    this.#placeOf = db.query("SELECT ordinal, agent, state FROM events WHERE event_id = ?");
    const waiting = `FROM events WHERE state = ${WAITS} AND agent = ? AND ordinal > ? AND ordinal <= ? AND NOT ${THOSE} ORDER BY ordinal LIMIT ?`;
    this.#waiting = db.query(
      `SELECT group_concat(text), count(*), max(ordinal) FROM (SELECT ordinal, ${EVENT_TEXT} AS text ${waiting})`,
    );
    this.#oldest = db.query(`SELECT ordinal ${waiting}`);
    this.#below = db.query(
      `SELECT ordinal, octet_length(body), ${EVENT_TEXT} FROM events
      WHERE ordinal < ? AND ordinal >= ? AND state BETWEEN ? AND ? AND (? IS NULL OR agent = ?) ORDER BY ordinal DESC LIMIT ?`,
    );
    this.#slice = db.query("SELECT ordinal FROM events WHERE ordinal < ? ORDER BY ordinal DESC LIMIT 1 OFFSET ?");
    // Left to itself, it looks through all that wait for the agent.
    this.#found = db.query(
      `SELECT json_group_array(ordinal) FROM (SELECT ordinal FROM events INDEXED BY events_by_id
      WHERE event_id IN (SELECT value FROM json_each(?)) AND agent = ? AND state = ${WAITS} ORDER BY ordinal)`,
    );
    this.#refs = db.query(
      `SELECT json_group_array(json_array(ordinal, event_id, attempts, delivery_id))
      FROM (SELECT * FROM events WHERE ${THOSE} ORDER BY ordinal)`,
    );
    this.#giveBack = db.run(`UPDATE events SET attempts = attempts + 1, reason = ?, turn_id = ? WHERE ${THOSE}`);
    this.#handled = db.run(`UPDATE events SET state = ${HANDLED}, ended_at = ?, turn_id = ? WHERE ${THOSE}`);
    this.#dead = db.run(`UPDATE events SET state = ${DEAD}, ended_at = ?, reason = ? WHERE ${THOSE}`);
    this.#requeue = db.run(
      `UPDATE events SET state = ${WAITS}, attempts = 0, ended_at = NULL, ordinal = ? WHERE ordinal = ?`,
    );
    this.#ended = db.query(
      "SELECT ordinal, state, octet_length(body) FROM events WHERE ended_at < ? ORDER BY ended_at LIMIT ?",
    );
    this.#delete = db.run(`DELETE FROM events WHERE ${THOSE}`);
    this.#open = db.query(`SELECT delivery_id FROM events WHERE state = ${WAITS} AND delivery_id IS NOT NULL`);

    const open = db.query(`SELECT agent, count(*) FROM events WHERE state = ${WAITS} GROUP BY agent`);
    for (const [agent, count] of open.all<[string, number]>([])) agents.of(agent).waitingEvents = count;
    for (const { events, turnId, agent } of turns) {
      for (const ordinal of events?.ordinals ?? []) this.#taken.set(ordinal, turnId);
      agents.of(agent).waitingEvents -= events?.ordinals.length ?? 0;
    }
  }

  /** Deliveries of those that have not ended. */
  openDeliveries(): string[] {
    return this.#open.all<[string]>([]).map(([deliveryId]) => deliveryId);
  }

  /** The newest place that was given. */
  get last(): number {
    return this.#ordinals.last;
  }

  /** Answers its place. `body` is JSON already. */
  add(eventId: string, agent: string, deliveryId: string | null, body: string): number {
    const ordinal = this.#ordinals.next();
    this.#rows.add(ordinal, eventId, agent, deliveryId, body);
    this.#totals.addBytes(EVENT_BYTES + Buffer.byteLength(body));
    this.#totals.counts.eventsQueued++;
    return ordinal;
  }

  read(eventId: string): EventText | undefined {
    this.flush();
    const row = this.#byId.get<[number, string]>([eventId]);
    return row && [row[1], this.#taken.get(row[0])];
  }

  placeOf(eventId: string): Place | undefined {
    this.flush();
    const row = this.#placeOf.get<[number, string, number]>([eventId]);
    return row && { ordinal: row[0], agent: row[1], status: statusOf(row[2]) };
  }

  /** Those of an agent that wait, oldest first, as one text; and the place of the last. */
  waiting(
    agent: string,
    after: number,
    through: number,
    limit: number,
  ): { texts: string; count: number; last: number } {
    this.flush();
    const of = [agent, after, Math.min(through, this.last), this.#takenAfter(after), limit];
    const [texts, count, last] = this.#waiting.get<[string | null, number, number | null]>(of) ?? [null, 0, null];
    return { texts: texts ?? "", count, last: last ?? after };
  }

  /** Places of the oldest of an agent that wait. */
  oldest(agent: string, limit: number): number[] {
    this.flush();
    return this.#oldest.all<[number]>([agent, 0, this.last, this.#takenAfter(0), limit]).map(([ordinal]) => ordinal);
  }

  /** Of about so many below a place those that match, newest first, at most `limit`; and the place where to go on, 0 at the end. */
  below(place: number, { agent = null, status, limit }: Wanted, look: number): { rows: ListedRow[]; next: number } {
    this.flush();
    const [least, most] = statesOf(status);
    const [next] = this.#slice.get<[number]>([place, look]) ?? [0];
    const rows = this.#below.all<[number, number, string]>([place, next, least, most, agent, agent, limit]);
    return {
      rows: rows.map(([ordinal, bytes, text]) => ({ ordinal, bytes, text: [text, this.#taken.get(ordinal)] })),
      next: rows.length === limit ? (rows.at(-1)?.[0] ?? 0) : next,
    };
  }

  /** Places of these events when all of them wait, for this agent, each once; else undefined. */
  findFree(eventIds: readonly string[], agent: string): number[] | undefined {
    this.flush();
    const [found] = this.#found.get<[string]>([JSON.stringify(eventIds), agent]) ?? ["[]"];
    const ordinals = JSON.parse(found) as number[];
    const isFree = ordinals.length === eventIds.length && !ordinals.some((ordinal) => this.#taken.has(ordinal));
    return isFree ? ordinals : undefined;
  }

  /** In their order. */
  refs(ordinals: readonly number[]): EventRef[] {
    const [refs] = this.#refs.get<[string]>([JSON.stringify(ordinals)]) ?? ["[]"];
    return JSON.parse(refs) as EventRef[];
  }

  take(ordinals: readonly number[], turnId: string): void {
    for (const ordinal of ordinals) this.#taken.set(ordinal, turnId);
  }

  giveBack(ordinals: readonly number[], turnId: string, reason: string): void {
    for (const ordinal of ordinals) this.#taken.delete(ordinal);
    this.#giveBack([JSON.stringify(reason), turnId, JSON.stringify(ordinals)]);
  }

  handled(ordinals: readonly number[], turnId: string, now: number): void {
    for (const ordinal of ordinals) this.#taken.delete(ordinal);
    this.#handled([now, turnId, JSON.stringify(ordinals)]);
    this.#totals.counts.eventsQueued -= ordinals.length;
  }

  dead(ordinals: readonly number[], reason: string, now: number): void {
    this.#dead([now, JSON.stringify(reason), JSON.stringify(ordinals)]);
    this.#totals.counts.eventsQueued -= ordinals.length;
    this.#totals.counts.eventsDead += ordinals.length;
  }

  /** Queues a dead one again, behind all others. */
  requeue(ordinal: number): void {
    this.#requeue([this.#ordinals.next(), ordinal]);
    this.#totals.counts.eventsDead--;
    this.#totals.counts.eventsQueued++;
  }

  /** Lets go what ended before a time, at most so many. Answers how many those were. */
  forgetBefore(time: number, limit: number): number {
    if (limit < 1) return 0;
    const ended = this.#ended.all<[number, number, number]>([time, limit]);
    if (ended.length === 0) return 0;
    this.#delete([JSON.stringify(ended.map(([ordinal]) => ordinal))]);
    for (const [, state, bytes] of ended) {
      this.#totals.addBytes(-EVENT_BYTES - bytes);
      if (state === DEAD) this.#totals.counts.eventsDead--;
    }
    return ended.length;
  }

  flush(): void {
    this.#ordinals.flush();
    this.#rows.flush();
  }

  /** Those behind a place that a turn works on. */
  #takenAfter(place: number): string {
    return JSON.stringify([...this.#taken.keys()].filter((ordinal) => ordinal > place));
  }
}

/** An event of a list. */
export type ListedRow = { ordinal: number; bytes: number; text: EventText };
