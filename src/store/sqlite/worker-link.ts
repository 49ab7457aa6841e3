import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { NO_POLICY, type StorePolicy } from "#store/policy.ts";
import { notifyWatcher } from "#store/rules/news.ts";
import type { Totals } from "#store/rules/records.ts";
import { isReading } from "#store/rules/rules.ts";
import type { AgentCounts, StoreNotice, StoreWatcher } from "#store/store.ts";
import type { Answer, Call, CallOrder, FromWorker, WorkerOrder } from "./messages.ts";

/** A call that is on its way. */
type Pending = { resolve: (value: never) => void; reject: (error: unknown) => void };

/** Starts a thread that serves the order. */
export type StartThread = (order: WorkerOrder) => Worker;

type LinkStart = {
  path: string;
  worker: URL | StartThread;
  notice: (notice: StoreNotice) => void;
  /** Throws, in a sentence, when the file may not be opened again yet. */
  beforeReopening: () => void;
};

const RETRY_MS = 1_000;
const REOPEN_MS = [100, 250, 500, 1_000] as const;
/** Calls that come at once wait for one another: the most calls, and the longest wait. */
const CALLS_AT_ONCE = 64;
const HELD_MS = 2;

/** The main side's end of the worker: calls go there together, answers and news come back together. */
export class WorkerLink {
  readonly clock: Clock;
  readonly #start: LinkStart;
  readonly #watchers = new Set<StoreWatcher>();
  #worker: Worker | undefined;
  #port: MessagePort | undefined;
  #closing: Promise<void> | undefined;
  /** Why it does not answer now. */
  #failure: string | undefined;
  #reopens = 0;
  #offset: number | undefined;
  /** The calls that go with the next message. */
  #calls: Call[] = [];
  #isPlanned = false;
  /** True if the disk syncs slowly: read-only calls do not wait for a sync, and run before waiting writes. */
  #isSlow = false;
  /** A message is on its way: calls that come meanwhile go with the next, and share a commit. */
  #isBusy = false;
  /** The number of calls at the last look. */
  #seen = 0;
  /** All calls that are not answered, by their ids. */
  readonly #waiting = new Map<number, Pending>();
  #lastId = 0;
  /** The thread of a reopened file gets it, too. */
  #policy = NO_POLICY;
  epoch = "";
  totals!: Totals;
  readonly agents = new Map<string, AgentCounts>();

  constructor(clock: Clock, start: LinkStart) {
    this.clock = clock;
    this.#start = start;
  }

  /** Starts the worker; throws, in a sentence, when the file does not open. */
  async open(): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    const { path, worker: thread } = this.#start;
    const [now, time] = [this.clock.now(), this.clock.monotonic()];
    const isOurs = this.#offset !== undefined;
    const offset = this.#offset ?? now - time;
    const order: WorkerOrder = {
      path,
      now,
      time,
      offset,
      isOurs,
      epoch: this.epoch,
      policy: this.#policy,
      port: port2,
    };
    const how = { workerData: order, transferList: [port2], stderr: false };
    const worker = thread instanceof URL ? new Worker(thread, how) : thread(order);
    const opened = await new Promise<FromWorker>((resolve, reject) => {
      port1.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", (code) => {
        // Its last words may be on their way.
        const last = receiveMessageOnPort(port1);
        if (last) resolve(last.message);
        else reject(new Error(`The store's thread ended with ${code}.`));
      });
    });
    worker.removeAllListeners();
    if (opened.kind !== "opened") {
      await worker.terminate();
      throw opened.kind === "refused" ? opened.error : new Error("The store's thread did not open its file.");
    }
    for (const notice of opened.notices) this.#start.notice(notice);
    this.#offset = order.offset;
    this.epoch = opened.epoch;
    this.totals = opened.totals;
    this.agents.clear();
    for (const [agent, counts] of opened.agents) this.agents.set(agent, counts);
    this.#worker = worker;
    this.#port = port1;
    this.#failure = undefined;
    port1.on("message", (message: FromWorker) => this.#take(message));
    worker.on("error", (error) => this.#lose(error instanceof Error ? error.message : String(error)));
    worker.on("exit", () => this.#lose("The store's thread has ended."));
    if (this.#policy !== order.policy) void this.configure(this.#policy);
  }

  /** Calls a method of the worker. The calls of one tick of the event loop, or of some, go in one message. */
  call<T>(name: string, ...args: unknown[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(unavailable(this.#failure));
        return;
      }
      const id = ++this.#lastId;
      this.#calls.push({ id, name, now: this.clock.now(), time: this.clock.monotonic(), args });
      this.#waiting.set(id, { resolve, reject });
      if (!this.#isBusy || this.#runsDuringSync(name)) this.#plan();
    });
  }

  async configure(policy: StorePolicy): Promise<void> {
    this.#policy = policy;
    // While the file cannot be used, the next thread starts with the policy.
    await this.call("configure", policy).catch(() => {});
  }

  watch(watcher: StoreWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Tells every watcher. */
  tell(say: (watcher: StoreWatcher) => void): void {
    for (const watcher of this.#watchers) say(watcher);
  }

  /** Lets the open calls be answered, and ends the worker. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const worker = this.#worker;
    this.#watchers.clear();
    if (!worker || this.#failure !== undefined) return;
    this.#isBusy = false;
    this.#send();
    this.#failure = "It was closed.";
    this.#port?.postMessage("close");
    await new Promise((resolve) => worker.once("exit", resolve));
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(this.#sendPlanned);
  }

  /** Calls are collected, to share a commit, as long as each turn of the event loop brings more. */
  readonly #sendPlanned = (): void => {
    const { length } = this.#calls;
    const heldMs = this.clock.monotonic() - (this.#calls[0]?.time ?? 0);
    if (length > this.#seen && length < CALLS_AT_ONCE && heldMs < HELD_MS) {
      this.#seen = length;
      setImmediate(this.#sendPlanned);
      return;
    }
    this.#isPlanned = false;
    this.#send();
  };

  #send(): void {
    const isOutOfOrder = this.#isBusy;
    const calls = isOutOfOrder ? this.#calls.filter(({ name }) => this.#runsDuringSync(name)) : this.#calls;
    if (calls.length === 0 || !this.#port) return;
    const order: CallOrder = { calls, isOutOfOrder };
    this.#port.postMessage(order);
    this.#calls = isOutOfOrder ? this.#calls.filter(({ name }) => !this.#runsDuringSync(name)) : [];
    this.#isBusy = true;
    this.#seen = 0;
  }

  #runsDuringSync(name: string): boolean {
    return this.#isSlow && isReading(name);
  }

  #take(message: FromWorker): void {
    if (message.kind === "lost") this.#lose(message.detail);
    if (message.kind === "noticed") this.#start.notice(message.notice);
    if (message.kind !== "answers") return;
    this.totals = message.totals;
    for (const [agent, counts] of message.agents) this.agents.set(agent, counts);
    this.#settle(message.answers);
    this.#isSlow = message.isSlow;
    if (message.isFree) this.#isBusy = false;
    if (this.#calls.length > 0 && !this.#isBusy) this.#plan();
  }

  #settle(answers: readonly Answer[]): void {
    for (const { id, value, refusal, news = [] } of answers) {
      const pending = this.#waiting.get(id);
      this.#waiting.delete(id);
      for (const one of news) this.tell((watcher) => notifyWatcher(watcher, one));
      if (refusal) pending?.reject(new GatewayError(refusal.name, refusal.detail, refusal.extra));
      else pending?.resolve(value as never);
    }
  }

  #lose(detail: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = detail;
    this.#start.notice({ name: "unavailable", detail: `${detail} The file will be reopened.` });
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#calls = [];
    this.#isBusy = false;
    for (const { reject } of waiting) reject(unavailable(detail));
    void this.#reopen();
  }

  async #reopen(): Promise<void> {
    this.#worker?.removeAllListeners();
    await this.#worker?.terminate();
    this.#port?.close();
    const wait = REOPEN_MS[Math.min(this.#reopens++, REOPEN_MS.length - 1)] as number;
    this.clock.after(wait, async () => {
      if (this.#closing) return;
      try {
        this.#start.beforeReopening();
        await this.open();
        this.#reopens = 0;
        this.#start.notice({ name: "available", detail: `${this.#start.path} was opened again.` });
        for (const kind of ["turn", "beat", "outgoing"] as const) this.tell((watcher) => watcher.work(kind));
        this.tell((watcher) => watcher.deliveriesLost?.());
      } catch (error) {
        this.#failure = error instanceof Error ? error.message : String(error);
        void this.#reopen();
      }
    });
  }
}

function unavailable(detail: string): GatewayError {
  return new GatewayError("store-unavailable", `The store does not answer: ${detail}`, { retryAfterMs: RETRY_MS });
}
