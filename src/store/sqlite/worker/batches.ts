import { serialize } from "node:v8";
import { GatewayError } from "#kit/errors.ts";
import { isPieces, type Pieces } from "#store/rules/records.ts";
import type { StoreNotice } from "#store/store.ts";
import type { Answer, Call, CallOrder, FromWorker, Refusal } from "../messages.ts";
import { DAMAGE } from "../text.ts";
import type { Database } from "./database.ts";
import { kindOf } from "./failures.ts";
import { methods, writes } from "./methods.ts";
import { restoreLeases } from "./opening.ts";
import { SqliteRecords } from "./records.ts";

/** A call that is worked off in pieces. */
type Parked = { id: number; name: string; pieces: Pieces<unknown> };

/** The time without writes after one was refused: each try costs a rollback. */
const REFUSED_MS = 250;
const RETRY_MS = 1_000;
/** Seldom enough that few calls wait for a checkpoint, and often enough that the log stays short. */
const BATCHES_A_CHECKPOINT = 128;
/** The bounds of a probe for free room: more bytes than a row, and at most as many as were refused. */
const LEAST_PROBE = 32 * 1024;
const MOST_PROBE = 16 * 1024 * 1024;
function probeOf(bytes: number): string {
  return `INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', zeroblob(${bytes}))`;
}

function refusal(name: Refusal["name"], detail: string): Refusal {
  return { name, detail, extra: { retryAfterMs: RETRY_MS } };
}
const ROLLED_BACK = refusal("store-unavailable", "Another write in the same transaction failed.");
const REFUSALS = {
  full: refusal("store-full", "The store's disk is full."),
  busy: refusal("store-unavailable", "Another process has locked the SQLite file."),
  damaged: refusal("store-unavailable", DAMAGE),
};
const PING = "ping";

/** Runs the calls of a batch in one transaction, in their order, and answers them when it is kept. */
export class Batches {
  readonly #db: Database;
  readonly #post: (message: FromWorker) => void;
  readonly #offset: number;
  #records: SqliteRecords;
  #parked: Parked[] = [];
  #sinceCheckpoint = 0;
  /** Answers that have not been sent. They are sent when all commits are on disk. */
  #answers: Answer[] = [];
  /** True if the next message can be sent after the answers. */
  #isFree = false;
  #isUnsynced = false;
  #isSyncing = false;
  /** Called once the file is closed. */
  #closed: (() => void) | undefined;
  /** The answer to calls that write, until a time. */
  #refused = { refusal: ROLLED_BACK, until: 0 };
  /** The disk was full, and no ping has found room since for as much as was refused. Smaller writes still go through. */
  #isFull = false;
  #refusedBytes = LEAST_PROBE;
  /** The connection is not to be relied on: nothing runs any more. */
  isLost = false;

  constructor(
    db: Database,
    { records, offset, post }: { records: SqliteRecords; offset: number; post: (message: FromWorker) => void },
  ) {
    this.#db = db;
    this.#records = records;
    this.#offset = offset;
    this.#post = post;
  }

  get hasParked(): boolean {
    return this.#parked.length > 0;
  }

  /** Runs them, and a piece of the work that was parked before. */
  run({ calls, isOutOfOrder }: CallOrder): void {
    const parked = this.#parked.shift();
    try {
      if (this.#isFull && calls.some(({ name, time }) => name === PING && time >= this.#refused.until)) this.#probe();
      const answers = this.#runTogether(calls);
      this.#dropNewsOfTurns(calls, answers);
      this.#answers.push(...answers);
      if (parked) this.#continueParked(parked);
      this.#records.trim();
      this.#isFree ||= !isOutOfOrder;
      if (!this.#isSyncing) this.#syncAndAnswer();
    } catch (error) {
      this.#lose(error);
    }
  }

  /** Closes the file after all calls have been answered, then calls `closed`. */
  close(closed: () => void): void {
    this.#parked = [];
    this.#closed = closed;
    if (!this.#isSyncing) this.#close();
  }

  #close(): void {
    const closed = this.#closed;
    this.#closed = undefined;
    if (!this.isLost) {
      try {
        this.#db.truncateLog();
      } catch {
        // The committed data is in the log, and is read from there.
      }
      this.#db.close();
    }
    closed?.();
  }

  /** Sends the answers after a sync. Read-only calls that run during a sync may read its data, so their answers wait for it too. */
  #syncAndAnswer(): void {
    if (!this.#isUnsynced) {
      this.#answer();
      return;
    }
    this.#isUnsynced = false;
    this.#isSyncing = true;
    this.#db.sync((error) => {
      this.#isSyncing = false;
      if (error !== undefined) this.#lose(error);
      else this.#synced();
      if (this.#closed && !this.#isSyncing) this.#close();
    });
  }

  #synced(): void {
    if (this.isLost) return;
    try {
      this.#syncAndAnswer();
      if (this.#sinceCheckpoint >= BATCHES_A_CHECKPOINT && !this.#isSyncing) this.#checkpoint();
    } catch (error) {
      this.#lose(error);
    }
  }

  /** A batch that fails is rolled back, and its calls run again one by one. */
  #runTogether(calls: readonly Call[]): Answer[] {
    try {
      const answers = calls.flatMap((call) => this.#call(call));
      this.#records.flush();
      this.#commit();
      return answers;
    } catch (error) {
      this.#recover(error, calls);
      const [call] = calls;
      if (call && calls.length === 1) return [{ id: call.id, refusal: refusalOf(error, call.name) }];
      return calls.flatMap((one) => this.#runTogether([one]));
    }
  }

  /** Watchers are not notified of turns that a claim of the same batch has taken. */
  #dropNewsOfTurns(calls: readonly Call[], answers: readonly Answer[]): void {
    if (!calls.some(({ name }) => name === "claimTurns") || this.#records.hasWork()) return;
    for (const answer of answers)
      answer.news &&= answer.news.filter((news) => news.kind !== "work" || news.of !== "turn");
  }

  #commit(): void {
    if (!this.#db.commitUnsynced()) return;
    this.#isUnsynced = true;
    this.#sinceCheckpoint++;
  }

  /** Without room in the file the log grows, and is read. */
  #checkpoint(): void {
    this.#sinceCheckpoint = 0;
    try {
      this.#db.checkpoint();
    } catch (error) {
      if (kindOf(error) === "lost") throw error;
    }
  }

  /** Nothing is answered yet to a call that takes more than a piece. */
  #call({ id, name, now, time, args }: Call): Answer | [] {
    if (this.#isFull && name === PING) return { id, refusal: REFUSALS.full };
    if (time < this.#refused.until && writes(name)) return { id, refusal: this.#refused.refusal };
    this.#records.moment = { now, time: time + this.#offset };
    try {
      const value = methods[name]?.(this.#records, ...args);
      if (isPieces(value)) return this.#runPiece({ id, name, pieces: value }) ?? [];
      const news = this.#records.takeNews();
      return news.length > 0 ? { id, value, news } : { id, value };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { id, refusal: refusalOf(error, name) };
    }
  }

  #runPiece(parked: Parked): Answer | undefined {
    const { done, value } = parked.pieces.next();
    if (done) return { id: parked.id, value };
    this.#parked.push(parked);
    return undefined;
  }

  /** Runs the next piece. Parked calls only read, so a failure leaves no partial change. */
  #continueParked(parked: Parked): void {
    const { id, name } = parked;
    try {
      const answer = this.#runPiece(parked);
      if (answer) this.#answers.push(answer);
    } catch (error) {
      if (kindOf(error) === "lost") throw error;
      this.#answers.push({ id, refusal: refusalOf(error, name) });
    }
  }

  #recover(error: unknown, calls: readonly Call[]): void {
    const kind = kindOf(error);
    if (kind === "lost") throw error;
    this.#reload(calls);
    if (kind === "full") this.#becomeFull(calls);
    if (kind === "full" || kind === "busy") {
      this.#refused = { refusal: REFUSALS[kind], until: (calls.at(-1)?.time ?? 0) + REFUSED_MS };
    }
  }

  #becomeFull(calls: readonly Call[]): void {
    if (!this.#isFull) this.#notice("unavailable", "The store's disk is full: new work is refused.");
    this.#isFull = true;
    this.#refusedBytes = Math.min(Math.max(this.#refusedBytes, serialize(calls).byteLength), MOST_PROBE);
  }

  /** Tries to write as much as was refused. */
  #probe(): void {
    try {
      this.#db.begin();
      this.#db.exec(probeOf(this.#refusedBytes));
      this.#commit();
      this.#isFull = false;
      this.#refusedBytes = LEAST_PROBE;
      this.#notice("available", "The store's disk has space again.");
      // The room of the probe is free again for the next writes.
      this.#db.begin();
      this.#db.exec("DELETE FROM meta WHERE name = 'probe'");
      this.#commit();
    } catch (error) {
      if (kindOf(error) === "lost") throw error;
      this.#db.rollback();
    }
  }

  /** `calls` run again, or are answered. */
  #reload(calls: readonly Call[]): void {
    this.#db.rollback();
    const before = this.#records;
    this.#records = new SqliteRecords(this.#db, before.bookmarks);
    restoreLeases(this.#records, before);
    const ids = new Set(calls.map(({ id }) => id));
    for (const { id } of this.#parked) if (!ids.has(id)) this.#answers.push({ id, refusal: ROLLED_BACK });
    this.#parked = [];
  }

  #notice(name: StoreNotice["name"], detail: string): void {
    this.#post({ kind: "noticed", notice: { name, detail } });
  }

  #answer(): void {
    const totals = this.#records.stats();
    const [answers, isFree] = [this.#answers, this.#isFree];
    if (answers.length === 0 && !isFree) return;
    this.#answers = [];
    this.#isFree = false;
    const agents = this.#records.takeChangedAgents();
    this.#post({ kind: "answers", answers, isFree, isSlow: this.#db.isSlow, totals, agents });
  }

  #lose(error: unknown): void {
    if (this.isLost) return;
    this.isLost = true;
    this.#post({ kind: "lost", detail: error instanceof Error ? error.message : String(error) });
  }
}

function refusalOf(error: unknown, call: string): Refusal {
  if (error instanceof GatewayError) return { name: error.name, detail: error.detail, extra: error.extra };
  const kind = kindOf(error);
  if (kind !== "unexpected" && kind !== "lost") return REFUSALS[kind];
  const cause = error instanceof Error ? error.message : String(error);
  return { name: "internal", detail: undefined, extra: { cause: `${call}: ${cause}` } };
}
