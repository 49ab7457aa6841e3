import { serialize } from "node:v8";
import { GatewayError } from "#kit/errors.ts";
import type { StoreNotice } from "#store/store.ts";
import { type Answers, CALL_WIDTH, type Calls, type FromWorker, type Refusal } from "../messages.ts";
import { DAMAGE } from "../text.ts";
import { Checkpoints, type StartCheckpointer } from "./checkpoints.ts";
import type { Database } from "./database.ts";
import { kindOf } from "./failures.ts";
import { methods, type Slices } from "./methods.ts";
import { flush, reloadState, type State } from "./state.ts";

type Parked = { ticket: number; slices: Slices };

/** So long nothing is written after the disk was full: each try costs a rollback. */
const FULL_MS = 250;
const RETRY_MS = 1_000;
/** Find out whether there is room again: for more than a row, and at most for so much as what was refused. */
const LEAST_PROBE = 32 * 1024;
const MOST_PROBE = 16 * 1024 * 1024;
const probeOf = (bytes: number): string => `INSERT OR REPLACE INTO meta VALUES ('probe', zeroblob(${bytes}))`;

const BUSY: Refusal = refusal("store-unavailable", "Another process holds the SQLite file.");
const FULL: Refusal = refusal("store-full", "The disk that the store is on is full.");
const DAMAGED: Refusal = refusal("store-unavailable", DAMAGE);
const ROLLED_BACK: Refusal = refusal("store-unavailable", "A write beside this call failed.");
const UNEXPECTED: Refusal = refusal("internal", undefined);

/** Runs the calls of a batch in one transaction, in their order, and answers them when it is kept. */
export class Batches {
  readonly #db: Database;
  readonly #post: (message: FromWorker) => void;
  #state: State;
  #parked: Parked[] = [];
  #tickets = 0;
  #fullUntil = 0;
  /** The disk was full, and no ping has found room since for as much as was refused. What fits is written meanwhile. */
  #isFull = false;
  #refusedBytes = LEAST_PROBE;
  readonly #checkpoints: Checkpoints;
  #toldTotals = "";
  #hasCommitted = false;
  /** The connection is not to be relied on: nothing runs any more. */
  isLost = false;

  constructor(
    db: Database,
    { state, post, startThread }: { state: State; post: (message: FromWorker) => void; startThread: StartCheckpointer },
  ) {
    this.#db = db;
    this.#state = state;
    this.#post = post;
    this.#checkpoints = new Checkpoints(db, startThread, (error) => this.#lose(error));
  }

  get hasParked(): boolean {
    return this.#parked.length > 0;
  }

  /** Runs them, and a slice of what was parked before. */
  run(calls: Calls): void {
    const answers = newAnswers();
    const parked = this.#parked.shift();
    const isFull = this.#fullUntil > lastTime(calls);
    this.#hasCommitted = false;
    try {
      if (this.#isFull && !isFull && asks(calls)) this.#probe();
      try {
        this.#runTogether(calls, answers, isFull ? FULL : undefined);
      } catch (error) {
        this.#recover(error, calls, answers);
      }
      if (parked) this.#goOn(parked, answers);
      this.#answer(answers);
      if (this.#hasCommitted) this.#checkpoints.committed();
    } catch (error) {
      this.#lose(error);
    }
  }

  async close(): Promise<void> {
    await this.#checkpoints.close();
    if (this.isLost) return;
    try {
      this.#db.checkpoint("TRUNCATE");
    } catch {
      // What is committed is in the log, and is read from there.
    }
    this.#db.close();
  }

  #runTogether(calls: Calls, answers: Answers, refused?: Refusal): void {
    const writes = refused === undefined && this.#hasWrite(calls);
    if (writes) this.#db.begin();
    if (writes && this.#isFull) this.#db.exec(probeOf(LEAST_PROBE));
    for (let at = 0; at < calls.length; at += CALL_WIDTH) {
      const name = calls[at] as string;
      if (this.#isFull && name === PING) refuse(answers, FULL);
      else if (refused && writesWith(name)) refuse(answers, refused);
      else this.#call(calls, at, answers);
    }
    if (writes) {
      flush(this.#state);
      this.#db.commit();
      this.#hasCommitted = true;
    }
    for (const news of this.#state.news) answers.news.push(news);
    this.#state.news = [];
  }

  #hasWrite(calls: Calls): boolean {
    for (let at = 0; at < calls.length; at += CALL_WIDTH) if (writesWith(calls[at] as string)) return true;
    return false;
  }

  /** Tries to write as much as was refused. */
  #probe(): void {
    try {
      this.#db.begin();
      this.#db.exec(probeOf(this.#refusedBytes));
      this.#db.commit();
      this.#hasCommitted = true;
      this.#isFull = false;
      this.#refusedBytes = LEAST_PROBE;
      this.#notice("available", "The disk that the store is on has room again.");
      // What it took is free again for what comes.
      this.#db.begin();
      this.#db.exec("DELETE FROM meta WHERE name = 'probe'");
      this.#db.commit();
    } catch (error) {
      if (kindOf(error) === "lost") throw error;
      this.#db.rollback();
    }
  }

  #call(calls: Calls, at: number, answers: Answers): void {
    const [name, time, args] = [calls[at] as string, calls[at + 1] as number, calls[at + 2]];
    this.#state.at = answers.values.length;
    try {
      const value = methods[name]?.run(this.#state, args, time);
      if (isSlices(value)) this.#park(value, answers);
      else answers.values.push(value);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      refuse(answers, refusalOf(error));
    }
  }

  #park(slices: Slices, answers: Answers): void {
    const { done, value } = slices.next();
    if (!done) {
      const ticket = ++this.#tickets;
      answers.parked.push({ at: answers.values.length, ticket });
      this.#parked.push({ ticket, slices });
    }
    answers.values.push(done ? value : undefined);
  }

  #goOn(parked: Parked, answers: Answers): void {
    const { ticket, slices } = parked;
    try {
      const { done, value } = slices.next();
      if (done) answers.late.push({ ticket, value, refusal: undefined });
      else this.#parked.push(parked);
    } catch (error) {
      // Slices only read: nothing of it is half done.
      const refused = error instanceof GatewayError ? refusalOf(error) : kindOf(error) === "damaged" && DAMAGED;
      if (!refused) throw error;
      answers.late.push({ ticket, value: undefined, refusal: refused });
    }
  }

  /** The batch is rolled back: its calls are refused, or run again one by one when the fault is in one of them. */
  #recover(error: unknown, calls: Calls, answers: Answers): void {
    const kind = kindOf(error);
    if (kind === "lost") throw error;
    const time = lastTime(calls);
    this.#reload(time);
    empty(answers);
    if (kind === "full") {
      if (!this.#isFull) this.#notice("unavailable", "The disk that the store is on is full: what is new is refused.");
      this.#isFull = true;
      this.#refusedBytes = Math.min(Math.max(this.#refusedBytes, serialize(calls).byteLength), MOST_PROBE);
      this.#fullUntil = time + FULL_MS;
    }
    if (kind === "full" || kind === "busy") {
      this.#runTogether(calls, answers, kind === "full" ? FULL : BUSY);
      return;
    }
    for (let at = 0; at < calls.length; at += CALL_WIDTH) this.#runAlone(calls.slice(at, at + CALL_WIDTH), answers);
  }

  #runAlone(call: Calls, answers: Answers): void {
    const { length } = answers.values;
    try {
      this.#runTogether(call, answers);
    } catch (error) {
      const kind = kindOf(error);
      if (kind === "lost") throw error;
      this.#reload(lastTime(call));
      answers.values.length = length;
      answers.refusals = answers.refusals.filter(({ at }) => at < length);
      const cause = error instanceof Error ? error.message : String(error);
      if (kind === "full") refuse(answers, FULL);
      else if (kind === "damaged") refuse(answers, DAMAGED);
      else refuse(answers, kind === "busy" ? BUSY : { ...UNEXPECTED, extra: { cause: `${call[0]}: ${cause}` } });
    }
  }

  #notice(name: StoreNotice["name"], detail: string): void {
    this.#post({ kind: "noticed", notice: { name, detail } });
  }

  #reload(time: number): void {
    this.#db.rollback();
    this.#state = reloadState(this.#state, time);
    for (const { ticket } of this.#parked) this.#lostTickets.push(ticket);
    this.#parked = [];
  }

  #lostTickets: number[] = [];

  #answer(answers: Answers): void {
    const { totals, agents } = this.#state;
    const told = JSON.stringify(totals.counts);
    if (told !== this.#toldTotals) answers.totals = totals.counts;
    this.#toldTotals = told;
    answers.agents = agents.takeChanged();
    for (const ticket of this.#lostTickets) answers.late.push({ ticket, value: undefined, refusal: ROLLED_BACK });
    this.#lostTickets = [];
    this.#post(answers);
  }

  #lose(error: unknown): void {
    this.isLost = true;
    this.#post({ kind: "lost", detail: error instanceof Error ? error.message : String(error) });
  }
}

const PING = "ping";
const asks = (calls: Calls): boolean => calls.includes(PING);
const writesWith = (name: string): boolean => methods[name]?.writes === true;

const newAnswers = (): Answers => ({
  kind: "answers",
  values: [],
  refusals: [],
  parked: [],
  late: [],
  news: [],
  totals: undefined,
  agents: [],
});

const empty = (answers: Answers): void => {
  Object.assign(answers, newAnswers());
};

const lastTime = (calls: Calls): number => (calls.length === 0 ? 0 : (calls[calls.length - CALL_WIDTH + 1] as number));

const isSlices = (value: unknown): value is Slices =>
  typeof value === "object" && value !== null && Symbol.iterator in value && "next" in value;

const refuse = (answers: Answers, refused: Refusal): void => {
  answers.refusals.push({ at: answers.values.length, refusal: refused });
  answers.values.push(undefined);
};

const refusalOf = ({ name, detail, extra }: GatewayError): Refusal => ({ name, detail, extra });

function refusal(name: Refusal["name"], detail: string | undefined): Refusal {
  return { name, detail, extra: name === "internal" ? {} : { retryAfterMs: RETRY_MS } };
}
