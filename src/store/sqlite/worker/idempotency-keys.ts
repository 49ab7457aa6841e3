import { bytesOf, toSql } from "../text.ts";
import type { Rows } from "./database.ts";
import type { Parts } from "./parts.ts";
import type { TotalsRow } from "./totals.ts";

/** What a key started. */
export type KeyWork = { turnId: string; eventId: undefined } | { turnId: undefined; eventId: string };
export type KnownKey = { hash: string; expiresAt: number } & KeyWork;
type Row = [place: number, hash: string, expiresAt: number, turnId: string | null, eventId: string | null];

const READ = `place, ${bytesOf("hash")}, expires_at, ${bytesOf("turn_id")}, ${bytesOf("event_id")}`;

/** What a key costs beside its text: its row, and its places in two trees. */
const KEY_BYTES = 200;

/** Idempotency keys. Callers choose them, and each is kept for a day: there may be millions. */
export class IdempotencyKeys {
  readonly #totals: TotalsRow;
  readonly #rows: Rows;
  readonly #find;
  readonly #oldest;
  readonly #delete;
  readonly #deleteOne;
  /** Those that wait to be written. */
  readonly #unwritten = new Map<string, KnownKey>();
  #lastPlace: number;

  constructor({ db, totals }: Parts) {
    this.#totals = totals;
    this.#rows = db.rows("INSERT INTO idempotency_keys (place, key, hash, expires_at, turn_id, event_id)", 6);
    this.#find = db.query(`SELECT ${READ} FROM idempotency_keys WHERE key = ?`);
    this.#oldest = db.query("SELECT place, expires_at, octet_length(key) FROM idempotency_keys ORDER BY place LIMIT ?");
    this.#delete = db.run("DELETE FROM idempotency_keys WHERE place <= ?");
    this.#deleteOne = db.run("DELETE FROM idempotency_keys WHERE place = ?");
    [this.#lastPlace] = db.query("SELECT coalesce(max(place), 0) FROM idempotency_keys").get<[number]>([]) ?? [0];
  }

  get(key: string): KnownKey | undefined {
    const unwritten = this.#unwritten.get(key);
    if (unwritten) return unwritten;
    const row = this.#find.get<Row>([toSql(key)]);
    if (!row) return undefined;
    const [, hash, expiresAt, turnId, eventId] = row;
    return { hash, expiresAt, ...workOf(turnId, eventId) };
  }

  /** Keeps a key, in the place of one that has ended. */
  keep({ key, hash, expiresAt }: { key: string; hash: string; expiresAt: number }, work: KeyWork): void {
    if (this.#unwritten.has(key)) this.flush();
    const sql = toSql(key);
    const ended = this.#find.get<Row>([sql]);
    if (ended) this.#deleteOne([ended[0]]);
    else this.#totals.addBytes(KEY_BYTES + Buffer.byteLength(sql));
    this.#unwritten.set(key, { hash, expiresAt, ...work });
    this.#rows.add(++this.#lastPlace, sql, hash, expiresAt, work.turnId ?? null, work.eventId ?? null);
  }

  /** Lets go what has ended, at most so many. Answers how many those were. */
  forgetUntil(now: number, limit: number): number {
    if (limit < 1) return 0;
    this.flush();
    let last = 0;
    let gone = 0;
    for (const [place, expiresAt, bytes] of this.#oldest.all<[number, number, number]>([limit])) {
      if (expiresAt > now) break;
      last = place;
      gone++;
      this.#totals.addBytes(-KEY_BYTES - bytes);
    }
    if (gone > 0) this.#delete([last]);
    return gone;
  }

  flush(): void {
    this.#unwritten.clear();
    this.#rows.flush();
  }
}

const workOf = (turnId: string | null, eventId: string | null): KeyWork =>
  turnId === null ? { turnId: undefined, eventId: eventId ?? "" } : { turnId, eventId: undefined };
