import { serialize } from "node:v8";
import { GatewayError } from "#kit/errors.ts";
import type { Pieces } from "#store/rules/records.ts";
import type { StoreNotice } from "#store/store.ts";
import type { Answer, Call, FromWorker, Refusal } from "../messages.ts";
import { DAMAGE } from "../text.ts";
import { Checkpoints, type StartCheckpointer } from "./checkpoints.ts";
import type { Database } from "./database.ts";
import { kindOf } from "./failures.ts";
import { isPieces, methods } from "./methods.ts";
import { keepLeases } from "./opening.ts";
import { SqliteRecords } from "./records.ts";

type Parked = { ticket: number; pieces: Pieces<unknown> };

/** So long nothing is written after the disk was full: each try costs a rollback. */
const FULL_MS = 250;
const RETRY_MS = 1_000;
/** How much is written to find out whether there is room again: more than a row, and at most as much as was refused. */
const LEAST_PROBE = 32 * 1024;
const MOST_PROBE = 16 * 1024 * 1024;
const probeOf = (bytes: number): string =>
  `INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', zeroblob(${bytes}))`;

const BUSY = refusal("store-unavailable", "Another process holds the SQLite file.");
const FULL = refusal("store-full", "The disk that the store is on is full.");
const DAMAGED = refusal("store-unavailable", DAMAGE);
const ROLLED_BACK = refusal("store-unavailable", "A write beside this call failed.");

/** Runs the calls of a batch in one transaction, in their order, and answers them when it is kept. */
export class Batches {
  readonly #db: Database;
  readonly #post: (message: FromWorker) => void;
  readonly #offset: number;
  readonly #checkpoints: Checkpoints;
  #records: SqliteRecords;
  #parked: Parked[] = [];
  #tickets = 0;
  #late: Answer[] = [];
  #fullUntil = 0;
  /** The disk was full, and no ping has found room since for as much as was refused. What fits is written meanwhile. */
  #isFull = false;
  #refusedBytes = LEAST_PROBE;
  /** The connection is not to be relied on: nothing runs any more. */
  isLost = false;

  constructor(
    db: Database,
    {
      records,
      offset,
      post,
      startThread,
    }: {
      records: SqliteRecords;
      offset: number;
      post: (message: FromWorker) => void;
      startThread: StartCheckpointer;
    },
  ) {
    this.#db = db;
    this.#records = records;
    this.#offset = offset;
    this.#post = post;
    this.#checkpoints = new Checkpoints(db, startThread, (error) => this.#lose(error));
  }

  get hasParked(): boolean {
    return this.#parked.length > 0;
  }

  /** Runs them, and a piece of what was parked before. */
  run(calls: readonly Call[]): void {
    const parked = this.#parked.shift();
    const isFull = this.#fullUntil > (calls.at(-1)?.time ?? 0);
    try {
      if (this.#isFull && !isFull && calls.some(({ name }) => name === PING)) this.#probe();
      const answers = this.#runOrRecover(calls, isFull ? FULL : undefined);
      if (parked) this.#goOn(parked);
      this.#records.trim();
      this.#answer(answers);
    } catch (error) {
      this.#lose(error);
    }
  }

  async close(): Promise<void> {
    await this.#checkpoints.close();
    if (this.isLost) return;
    try {
      this.#db.truncateLog();
    } catch {
      // What is committed is in the log, and is read from there.
    }
    this.#db.close();
  }

  #runOrRecover(calls: readonly Call[], refused: Refusal | undefined): Answer[] {
    try {
      return this.#runTogether(calls, refused);
    } catch (error) {
      return this.#recover(error, calls);
    }
  }

  /** `refused` is what calls that write are answered with. */
  #runTogether(calls: readonly Call[], refused?: Refusal): Answer[] {
    const answers = calls.map((call): Answer => {
      if (this.#isFull && call.name === PING) return { refusal: FULL };
      return refused && methods[call.name]?.writes ? { refusal: refused } : this.#call(call);
    });
    this.#records.flush();
    this.#commit();
    return answers;
  }

  #commit(): void {
    if (this.#db.commit()) this.#checkpoints.committed();
  }

  #call({ name, now, time, args }: Call): Answer {
    this.#records.moment = { now, time: time + this.#offset };
    try {
      const value = methods[name]?.run(this.#records, ...args);
      if (isPieces(value)) return this.#park(value);
      const news = this.#records.takeNews();
      return news.length > 0 ? { value, news } : { value };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { refusal: refusalOf(error) };
    }
  }

  #park(pieces: Pieces<unknown>): Answer {
    const { done, value } = pieces.next();
    if (done) return { value };
    const ticket = ++this.#tickets;
    this.#parked.push({ ticket, pieces });
    return { ticket };
  }

  #goOn(parked: Parked): void {
    const { ticket, pieces } = parked;
    try {
      const { done, value } = pieces.next();
      if (done) this.#late.push({ ticket, value });
      else this.#parked.push(parked);
    } catch (error) {
      // It only reads: nothing of it is half done.
      const refused = error instanceof GatewayError ? refusalOf(error) : kindOf(error) === "damaged" && DAMAGED;
      if (!refused) throw error;
      this.#late.push({ ticket, refusal: refused });
    }
  }

  /** The batch is rolled back: its calls are refused, or run again one by one when the fault is in one of them. */
  #recover(error: unknown, calls: readonly Call[]): Answer[] {
    const kind = kindOf(error);
    if (kind === "lost") throw error;
    this.#reload();
    if (kind === "full") this.#becomeFull(calls);
    if (kind === "full" || kind === "busy") return this.#runTogether(calls, kind === "full" ? FULL : BUSY);
    return calls.flatMap((call) => this.#runAlone(call));
  }

  #runAlone(call: Call): Answer[] {
    try {
      return this.#runTogether([call]);
    } catch (error) {
      const kind = kindOf(error);
      if (kind === "lost") throw error;
      this.#reload();
      if (kind === "full") return [{ refusal: FULL }];
      if (kind === "busy") return [{ refusal: BUSY }];
      if (kind === "damaged") return [{ refusal: DAMAGED }];
      const cause = error instanceof Error ? error.message : String(error);
      return [{ refusal: { name: "internal", detail: undefined, extra: { cause: `${call.name}: ${cause}` } } }];
    }
  }

  #becomeFull(calls: readonly Call[]): void {
    if (!this.#isFull) this.#notice("unavailable", "The disk that the store is on is full: what is new is refused.");
    this.#isFull = true;
    this.#refusedBytes = Math.min(Math.max(this.#refusedBytes, serialize(calls).byteLength), MOST_PROBE);
    this.#fullUntil = (calls.at(-1)?.time ?? 0) + FULL_MS;
  }

  /** Tries to write as much as was refused. */
  #probe(): void {
    try {
      this.#db.begin();
      this.#db.exec(probeOf(this.#refusedBytes));
      this.#commit();
      this.#isFull = false;
      this.#refusedBytes = LEAST_PROBE;
      this.#notice("available", "The disk that the store is on has room again.");
      // What it took is free again for what comes.
      this.#db.begin();
      this.#db.exec("DELETE FROM meta WHERE name = 'probe'");
      this.#commit();
    } catch (error) {
      if (kindOf(error) === "lost") throw error;
      this.#db.rollback();
    }
  }

  #reload(): void {
    this.#db.rollback();
    const before = this.#records;
    this.#records = new SqliteRecords(this.#db, before);
    keepLeases(this.#records, before);
    for (const { ticket } of this.#parked) this.#late.push({ ticket, refusal: ROLLED_BACK });
    this.#parked = [];
  }

  #notice(name: StoreNotice["name"], detail: string): void {
    this.#post({ kind: "noticed", notice: { name, detail } });
  }

  #answer(answers: Answer[]): void {
    const { totals } = this.#records;
    const late = this.#late;
    if (answers.length + late.length === 0) return;
    this.#late = [];
    this.#post({ kind: "answers", answers, late, totals, agents: this.#records.takeChangedAgents() });
  }

  #lose(error: unknown): void {
    this.isLost = true;
    this.#post({ kind: "lost", detail: error instanceof Error ? error.message : String(error) });
  }
}

const PING = "ping";

const refusalOf = ({ name, detail, extra }: GatewayError): Refusal => ({ name, detail, extra });

function refusal(name: Refusal["name"], detail: string): Refusal {
  return { name, detail, extra: { retryAfterMs: RETRY_MS } };
}
