import type pg from "pg";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { drop } from "./connect.ts";
import { failureOf, unavailable } from "./errors.ts";
import type { Pool } from "./pool.ts";
import type { Memory } from "./records/memory.ts";
import { type CommittedChanges, type PostgresRecords, TransactionRecords } from "./records/records.ts";
import { planOf, type Row, sql } from "./records/sql.ts";
import { type NamedSql, type Statement, Transaction } from "./records/transaction.ts";

type Rule = (records: PostgresRecords) => unknown;
/** A call: the rule to run in a transaction, and the callbacks for its result. */
type Order = {
  rule: Rule;
  bytes: number;
  /** True if the caller has its answer, so that the order does not run again. */
  isOver?: true;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
};
type Outcome = { order: Order; answer: unknown; error?: unknown };

/** The most waiting orders. Further ones are rejected. */
const MOST_WAITING = 20_000;
/** The most orders in a transaction, and the number of bytes above which no further order is added. */
const MOST_ORDERS = 200;
const MOST_BYTES = 2_000_000;
/** The most attempts at a transaction that conflicts with another, or whose connection is lost. */
const MOST_TRIES = 5;
/** The longest pause that collects the next calls of callers that have just received their answers. */
const PATIENCE_MS = 5;
/** The interval at which the outcome of a commit is polled if its answer was lost. */
const COMMIT_POLL_MS = 100;

const BEGIN = { name: "begin", sql: "begin" };
const READING = { name: "begin", sql: "begin isolation level repeatable read read only" };
const TRANSACTION = { name: "transaction_id", sql: sql`select txid_current() as id` };
const COMMIT = { name: "commit", sql: "commit" };
const UNPREPARED: ReadonlySet<string> = new Set([BEGIN.name, COMMIT.name]);

type BatcherParts = {
  clock: Clock;
  pool: Pool;
  memory: Memory;
  /** The statement that takes the lock for writes, which one gateway holds at a time. Undefined for orders that only read. */
  lock: NamedSql | undefined;
  /** The most transactions at a time. */
  atOnce: number;
  /** The statements that notify other gateways of the changes. */
  notificationsOf(changes: CommittedChanges): NamedSql[];
  /** Computes the pause after a transaction from its duration. */
  pauseOf?: (tookMs: number) => number;
  /** Called after a commit, before its callers get their answers. */
  committed(committed: CommittedChanges): void;
};

/**
 * Runs orders in transactions: all waiting orders share one. Only one gateway writes at a time, so rules run one after another, as in the memory store.
 */
export class TransactionBatcher {
  readonly #parts: BatcherParts;
  #waiting: Order[] = [];
  #running = 0;
  #isPlanned = false;

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /** Runs a rule. `bytes` is the approximate size of its writes. */
  run<T>(rule: (records: PostgresRecords) => T, bytes = 0): Promise<T> {
    if (this.#waiting.length >= MOST_WAITING) {
      return Promise.reject(unavailable("Too many calls wait for the database."));
    }
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ rule, bytes, resolve: resolve as Order["resolve"], reject });
      this.#plan();
    });
  }

  /** Runs a rule in a separate transaction on this connection, without waiting for other calls. */
  async runOn<T>(client: pg.Client, rule: (records: PostgresRecords) => T): Promise<T> {
    return await new Promise<T>((resolve, reject) => {
      const order = { rule, bytes: 0, resolve: resolve as Order["resolve"], reject };
      new Attempt(this.#parts, [order]).run(client).then(settle, reject);
    });
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    // Calls of one tick of the event loop share a transaction.
    setImmediate(() => {
      this.#isPlanned = false;
      while (this.#running < this.#parts.atOnce && this.#waiting.length > 0) void this.#runNext(this.#takeNext());
    });
  }

  #takeNext(): Order[] {
    let bytes = 0;
    let count = 0;
    for (const order of this.#waiting) {
      if (count === MOST_ORDERS || bytes > MOST_BYTES) break;
      bytes += order.bytes;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #runNext(orders: readonly Order[]): Promise<void> {
    this.#running++;
    const began = performance.now();
    await this.#settleAll(orders);
    const tookMs = performance.now() - began;
    // Callers that make their next call after an answer do so all at the same time. The pause collects these calls in one transaction.
    const patienceMs =
      orders.length > 1 && this.#waiting.length < orders.length ? Math.min(tookMs / 4, PATIENCE_MS) : 0;
    const pauseMs = Math.max(this.#parts.pauseOf?.(tookMs) ?? 0, patienceMs);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    this.#running--;
    if (this.#waiting.length > 0) this.#plan();
  }

  async #settleAll(orders: readonly Order[]): Promise<void> {
    try {
      settle(await this.#transact(orders));
    } catch (error) {
      // An order that the database rejects must not fail the others.
      if (failureOf(error) === "broken" && orders.length > 1) {
        for (const order of orders) await this.#settleAll([order]);
        return;
      }
      for (const { reject } of orders) reject(error);
    }
  }

  async #transact(orders: readonly Order[]): Promise<Outcome[]> {
    for (let tries = 1; ; tries++) {
      const attempt = new Attempt(this.#parts, orders);
      try {
        return await this.#parts.pool.run((client) => attempt.run(client));
      } catch (error) {
        const failure = failureOf(error);
        if (failure === "broken") throw error;
        // The original message may contain the address of the database, so only the log gets it (as the cause).
        if (error instanceof GatewayError) throw unavailable("The database cannot be reached.", error);
        if (failure === "lost" && attempt.id !== undefined && (await this.#isCommitted(attempt.id)))
          return attempt.succeed();
        if (failure === "refused" || tries === MOST_TRIES) throw unavailable("The database did not answer.", error);
      }
    }
  }

  /** Returns true if a transaction whose connection was lost was committed. */
  async #isCommitted(id: string): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        const status = await this.#parts.pool.run(async (client) => (await client.query(STATUS, [id])).rows[0]?.status);
        if (status !== "in progress") return status === "committed";
      } catch (error) {
        if (error instanceof GatewayError || tries >= MOST_TRIES)
          throw unavailable("The database did not answer.", error);
      }
      await new Promise((resolve) => setTimeout(resolve, COMMIT_POLL_MS));
    }
  }
}

/** The status is null if the server crashed and does not know the id: then the transaction was not committed. */
const STATUS = "select case when $1 < txid_snapshot_xmax(txid_current_snapshot()) then txid_status($1) end as status";

/** One attempt at a transaction. */
class Attempt {
  readonly #parts: BatcherParts;
  readonly #records: TransactionRecords;
  #orders: readonly Order[];
  #outcomes: Outcome[] = [];
  /** The id of the transaction. Set just before its changes are sent: earlier, nothing can be committed. */
  id: string | undefined;

  constructor(parts: BatcherParts, orders: readonly Order[]) {
    this.#parts = parts;
    this.#orders = orders.filter(({ isOver }) => !isOver);
    this.#records = new TransactionRecords(new Transaction(parts.clock), parts.memory, parts.lock !== undefined);
  }

  async run(client: pg.Client): Promise<Outcome[]> {
    const { lock, notificationsOf } = this.#parts;
    let begin: NamedSql[] = lock === undefined ? [READING] : [BEGIN, lock, TRANSACTION];
    let id: string | undefined;
    try {
      for (let wanted = this.#pass(); wanted.length > 0 || begin.length > 0; wanted = this.#pass()) {
        const answers = await query(client, [...begin, ...wanted]);
        if (begin.length > 1) id = answers[begin.length - 1]?.[0]?.id as string;
        for (const [n, { take }] of wanted.entries()) take(answers[begin.length + n] ?? []);
        begin = [];
      }
      const saved = lock === undefined ? [] : this.#records.saved();
      if (saved.length === 0) {
        await client.query("commit");
        // A sweep that erases nothing continues from its bookmark.
        if (lock !== undefined) this.#records.remember();
        return this.#outcomes;
      }
      this.id = id;
      await query(client, [...saved, ...notificationsOf(this.#records.changes()), COMMIT]);
    } catch (error) {
      if (failureOf(error) !== "lost") await rollback(client);
      throw error;
    }
    return this.succeed();
  }

  /** Reports the changes as committed, and returns the outcomes. If a watcher throws, all calls get its error, but no order runs again. */
  succeed(): Outcome[] {
    this.#records.remember();
    try {
      this.#parts.committed(this.#records.changes());
    } catch (error) {
      return this.#outcomes.map((outcome) => ({ ...outcome, error }));
    }
    return this.#outcomes;
  }

  /** Runs all orders once. Returns the statements that load the missing records; none if the results are valid. */
  #pass(): Statement[] {
    for (;;) {
      const records = this.#records.begin();
      this.#outcomes = this.#orders.map((order) => outcomeOf(order, records));
      const wanted = this.#records.transaction.wanted();
      const broken = this.#outcomes.find(({ error }) => error !== undefined && !(error instanceof GatewayError));
      if (wanted.length > 0 || !broken) return wanted;
      // The broken order may have changed records, so the others run again without it.
      broken.order.reject(broken.error);
      broken.order.isOver = true;
      this.#orders = this.#orders.filter((order) => order !== broken.order);
    }
  }
}

function settle(outcomes: readonly Outcome[]): void {
  for (const { order, answer, error } of outcomes) {
    if (error === undefined) order.resolve(answer);
    else order.reject(error);
  }
}

function outcomeOf(order: Order, records: PostgresRecords): Outcome {
  try {
    return { order, answer: order.rule(records) };
  } catch (error) {
    return { order, answer: undefined, error };
  }
}

/** The names of the prepared statements of a connection, by their texts. */
const plansOf = new WeakMap<pg.Client, Map<string, string>>();

/** Sends several statements together. Returns the rows of each. */
async function query(client: pg.Client, statements: readonly NamedSql[]): Promise<Row[][]> {
  const plans = plansOf.get(client) ?? new Map<string, string>();
  plansOf.set(client, plans);
  const sent = statements.flatMap(({ name, sql }) => {
    if (UNPREPARED.has(name)) return sql;
    const { text, values } = planOf(sql);
    const known = plans.get(text);
    const plan = known ?? newName(plans, name);
    plans.set(text, plan);
    const run = `execute ${plan}${values.length > 0 ? `(${values.join(", ")})` : ""}`;
    return known ? run : [`prepare ${plan} as ${text}`, run];
  });
  const answer: unknown = await client.query(sent.join(";\n"));
  const answers = (Array.isArray(answer) ? answer : [answer]) as pg.QueryResult<Row>[];
  return answers.filter(({ command }) => command !== "PREPARE").map(({ rows }) => rows);
}

/** The name of a statement, with a number if the connection has another statement of the same name. */
function newName(plans: ReadonlyMap<string, string>, name: string): string {
  const given = new Set(plans.values());
  let plan = name;
  for (let n = 1; given.has(plan); n++) plan = `${name}_${n}`;
  return plan;
}

/** Ends a failed transaction. It may have failed before it had prepared all its statements. */
async function rollback(client: pg.Client): Promise<void> {
  try {
    const answer: unknown = await client.query("rollback; select name from pg_prepared_statements");
    const prepared = new Set((answer as pg.QueryResult[])[1]?.rows.map(({ name }) => name));
    const plans = plansOf.get(client) ?? new Map<string, string>();
    for (const [text, plan] of plans) if (!prepared.has(plan)) plans.delete(text);
  } catch {
    drop(client);
  }
}
