import type { MoreUsage, Session } from "#store/store.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Query, Rows, Value } from "./database.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { SessionRow } from "./rows.ts";
import type { TotalsRow } from "./totals.ts";

type Stored = readonly [
  ordinal: number,
  sessionId: string,
  agent: string,
  used: number,
  head: number | null,
  body: string,
];

const COLUMNS = "ordinal, session_id, agent, used, head, body";
const READ = `ordinal, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}, used, head, ${bytesOf("body")}`;
const MINUTE = 60_000;
/** What a session weighs beside its journal. */
const SESSION_BYTES = 300;
/** So many are held although nothing waits in them. */
const HELD = 20_000;

export const isWebhook = (sessionId: string): boolean => sessionId.startsWith("webhook:");

/** Sessions by id and ordinal. Those that were used lately are held, and written once a batch. */
export class Sessions {
  readonly #totals: TotalsRow;
  readonly #ordinals: Ordinals;
  readonly #byId: Query;
  readonly #byOrdinal: Query;
  readonly #inserts: Rows;
  readonly #updates: ReturnType<Database["run"]>;
  readonly #moves: ReturnType<Database["run"]>;
  readonly #refiles: ReturnType<Database["run"]>;
  readonly #deletes: Rows;
  readonly #page: Query;
  readonly #pageOf: Query;
  readonly #unused: Query;
  readonly #heads: Query;
  readonly #held = new Map<string, SessionRow>();
  readonly #heldByOrdinal = new Map<number, SessionRow>();
  #dirty: SessionRow[] = [];

  constructor({ db, totals }: Parts) {
    this.#totals = totals;
    this.#ordinals = new Ordinals(db, "sessions");
    this.#byId = db.query(`SELECT ${READ} FROM sessions WHERE session_id = ?`);
    this.#byOrdinal = db.query(`SELECT ${READ} FROM sessions WHERE ordinal = ?`);
    this.#inserts = db.rows(`INSERT INTO sessions (${COLUMNS}, webhook)`, 7);
    this.#updates = db.run("UPDATE sessions SET body = ? WHERE ordinal = ?");
    this.#moves = db.run("UPDATE sessions SET body = ?, head = ? WHERE ordinal = ?");
    this.#refiles = db.run("UPDATE sessions SET used = ? WHERE ordinal = ?");
    this.#deletes = db.keys("DELETE FROM sessions WHERE ordinal IN");
    this.#page = db.query(`SELECT ${READ} FROM sessions WHERE ordinal < ? ORDER BY ordinal DESC LIMIT ?`);
    this.#pageOf = db.query(
      `SELECT ${READ} FROM sessions WHERE agent = ? AND ordinal < ? ORDER BY ordinal DESC LIMIT ?`,
    );
    this.#heads = db.query(`SELECT ${READ} FROM sessions WHERE webhook = ? AND head <= ? ORDER BY head LIMIT ?`);
    this.#unused = db.query(
      `SELECT ${READ} FROM sessions WHERE webhook = ? AND (used, ordinal) > (?, ?) AND used <= ? ORDER BY used, ordinal LIMIT ?`,
    );
  }

  get(sessionId: string): SessionRow | undefined {
    return this.#held.get(sessionId) ?? this.#read(this.#byId, toSql(sessionId));
  }

  at(ordinal: number): SessionRow | undefined {
    return this.#heldByOrdinal.get(ordinal) ?? this.#read(this.#byOrdinal, ordinal);
  }

  /** Those made before one, the newest first; of one agent or all. */
  page(agent: string | undefined, before: number, limit: number): SessionRow[] {
    this.flush();
    const stored =
      agent === undefined
        ? this.#page.all<Stored>([before, limit])
        : this.#pageOf.all<Stored>([toSql(agent), before, limit]);
    return stored.map((one) => this.#of(one));
  }

  /**
   * Those that may not have been used since a minute, by the last one of which the file knows, the longest ago first; after a place in that order.
   * The file learns of a later one when `refile` is called, not with each use: that would write two more pages of its index.
   */
  unused(webhook: boolean, after: { used: number; ordinal: number }, through: number, limit: number): SessionRow[] {
    this.flush();
    const stored = this.#unused.all<Stored>([webhook ? 1 : 0, after.used, after.ordinal, through, limit]);
    return stored.map((one) => this.#take(one));
  }

  /** Its place among the unused is that of its last use again. */
  refile(row: SessionRow): void {
    const used = minuteOf(row.updatedAt);
    if (!row.isStored || used === row.storedUse) return;
    this.#refiles([used, row.ordinal]);
    row.storedUse = used;
  }

  open(of: Pick<Session, "sessionId" | "agent" | "channel" | "userId">, now: number): SessionRow {
    const row: SessionRow = {
      sessionId: of.sessionId,
      agent: of.agent,
      channel: of.channel,
      userId: of.userId,
      ordinal: this.#ordinals.next(),
      createdAt: now,
      updatedAt: now,
      firstSeq: 1,
      lastSeq: 0,
      messageCount: 0,
      compactedCount: 0,
      input: 0,
      output: 0,
      contextBytes: 0,
      more: undefined,
      head: undefined,
      queue: [],
      isDirty: false,
      isStored: false,
      storedUse: 0,
      storedHead: undefined,
    };
    this.#hold(row);
    this.#totals.counts.sessions++;
    this.#totals.addBytes(SESSION_BYTES);
    this.touch(row);
    return row;
  }

  /** Its row is to be written with the batch. */
  touch(row: SessionRow): void {
    if (row.isDirty) return;
    row.isDirty = true;
    this.#dirty.push(row);
  }

  delete(row: SessionRow): void {
    this.#held.delete(row.sessionId);
    this.#heldByOrdinal.delete(row.ordinal);
    this.#totals.counts.sessions--;
    this.#totals.addBytes(-SESSION_BYTES);
    this.#dirty = this.#dirty.filter((other) => other !== row);
    if (!row.isStored) return;
    this.#deletes.add(row.ordinal);
    // Its id can begin anew in the same batch.
    this.#deletes.flush();
  }

  /** Those of whose journal the head may be cut from such a minute on. */
  agedHeads(webhook: boolean, through: number, limit: number): SessionRow[] {
    this.flush();
    return this.#heads.all<Stored>([webhook ? 1 : 0, through, limit]).map((one) => this.#take(one));
  }

  flush(): void {
    this.#ordinals.flush();
    for (const row of this.#dirty) this.#write(row);
    this.#dirty = [];
    this.#inserts.flush();
    this.#letGo();
  }

  /** As it is held, or as its row has it. */
  #of(stored: Stored): SessionRow {
    return this.#heldByOrdinal.get(stored[0]) ?? decode(stored);
  }

  #read(query: Query, key: Value): SessionRow | undefined {
    const stored = query.get<Stored>([key]);
    return stored && this.#take(stored);
  }

  /** To be changed: it is held from now on. */
  #take(stored: Stored): SessionRow {
    const row = this.#of(stored);
    this.#hold(row);
    return row;
  }

  #hold(row: SessionRow): void {
    this.#held.set(row.sessionId, row);
    this.#heldByOrdinal.set(row.ordinal, row);
  }

  #write(row: SessionRow): void {
    row.isDirty = false;
    const body = bodyOf(row);
    const head = row.head ?? null;
    if (!row.isStored) {
      const used = minuteOf(row.updatedAt);
      const ids = [toSql(row.sessionId), toSql(row.agent)] as const;
      this.#inserts.add(row.ordinal, ...ids, used, head, body, isWebhook(row.sessionId) ? 1 : 0);
      row.isStored = true;
      row.storedUse = used;
    } else if (row.head === row.storedHead) {
      this.#updates([body, row.ordinal]);
    } else {
      this.#moves([body, head, row.ordinal]);
    }
    row.storedHead = row.head;
  }

  /** Lets the oldest go of those that are held for nothing. */
  #letGo(): void {
    if (this.#held.size <= HELD) return;
    let left = this.#held.size - HELD;
    for (const [sessionId, row] of this.#held) {
      if (left-- <= 0) return;
      if (row.queue.length > 0) continue;
      this.#held.delete(sessionId);
      this.#heldByOrdinal.delete(row.ordinal);
    }
  }
}

const minuteOf = (at: number): number => Math.floor(at / MINUTE);

const bodyOf = (row: SessionRow): string =>
  JSON.stringify([
    row.channel,
    row.userId,
    row.createdAt,
    row.updatedAt,
    row.firstSeq,
    row.lastSeq,
    row.messageCount,
    row.compactedCount,
    row.input,
    row.output,
    row.contextBytes,
    ...(row.more ? [row.more] : []),
  ]);

/** As `bodyOf` writes it. */
type Body = readonly [
  channel: string,
  userId: string,
  createdAt: number,
  updatedAt: number,
  firstSeq: number,
  lastSeq: number,
  messageCount: number,
  compactedCount: number,
  input: number,
  output: number,
  contextBytes: number,
  more?: MoreUsage,
];

/** By their places, and into one object: a page of a list is fifty of these, and to take arrays apart and objects together costs more than to read them. */
const decode = (stored: Stored): SessionRow => {
  const body = JSON.parse(stored[5]) as Body;
  const head = stored[4] ?? undefined;
  return {
    sessionId: stored[1],
    agent: stored[2],
    channel: body[0],
    userId: body[1],
    ordinal: stored[0],
    createdAt: body[2],
    updatedAt: body[3],
    firstSeq: body[4],
    lastSeq: body[5],
    messageCount: body[6],
    compactedCount: body[7],
    input: body[8],
    output: body[9],
    contextBytes: body[10],
    more: body[11],
    head,
    queue: [],
    isDirty: false,
    isStored: true,
    storedUse: stored[3],
    storedHead: head,
  };
};
