import type { Backend, BackendTurn, Chunk, Chunks, Used } from "#backends/backend.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import { modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { TurnError, Usage } from "#store/store.ts";
import type { StopReason, TurnWatch } from "./turn-watch.ts";

export type Outcome = {
  status: "completed" | "failed" | "cancelled" | "retry" | "handed-back";
  reply: string;
  error?: TurnError;
  usage: Usage;
  retryAfterMs?: number | undefined;
  /** The model that answered, if it is not the requested one. */
  model?: string | undefined;
  /** The error that the backend threw. It is only for the log. */
  thrown?: unknown;
};

/** Called during a run. */
export type RunListener = {
  text(text: string): void;
  /** The text of all calls of `text`. */
  readonly written: { readonly pieces: readonly string[]; readonly length: number };
  note(note: Note): void;
  readonly watch: Pick<TurnWatch, "alive" | "restart">;
};
export type Note = Extract<Chunk, { note: unknown }>["note"];

const STEPS_IN_A_ROW = 2048;
/** The most characters of a reply. A longer reply is an error of the backend. */
const REPLY_LIMIT = 4 * 1024 * 1024;

/**
 * Runs a turn on a backend and resolves with the outcome. Never rejects. Resolves when `signal` is aborted, even if the backend ignores it: its later
 * chunks are ignored.
 */
export function runTurn(
  backend: Backend,
  turn: BackendTurn,
  signal: StopSignal,
  listener: RunListener,
): Promise<Outcome> {
  // One promise for the whole turn: a `Promise.race` for each chunk would add a reaction to the signal's promise each time.
  return new Promise((resolve) => new BackendRun(backend, turn, signal, listener, resolve).begin());
}

/** A run of a backend. It ends when the backend ends or the signal is aborted. */
class BackendRun {
  readonly #backend: Backend;
  readonly #turn: BackendTurn;
  readonly #signal: StopSignal;
  readonly #listener: RunListener;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #outcome: Outcome = { status: "completed", reply: "", usage: NO_USAGE };
  #chunks: Chunks | undefined;
  #iterator: AsyncIterator<Chunk> | undefined;

  constructor(
    backend: Backend,
    turn: BackendTurn,
    signal: StopSignal,
    listener: RunListener,
    resolve: (outcome: Outcome) => void,
  ) {
    this.#backend = backend;
    this.#turn = turn;
    this.#signal = signal;
    this.#listener = listener;
    this.#resolve = resolve;
  }

  begin(): void {
    const { asksOutside } = this.#backend;
    const { hops } = this.#turn;
    try {
      this.#signal.throwIfAborted();
      if (asksOutside && isLoop(hops)) throw new BackendError(`the agent was not called: ${loopWords()}`);
      this.#chunks = this.#backend.run(this.#turn, this.#signal);
      this.#iterator = this.#chunks[Symbol.asyncIterator]();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#signal.addEventListener("abort", this.#stop, { once: true });
    void this.#takeChunks(this.#iterator);
  }

  /** Takes all chunks until the end or an abort. */
  async #takeChunks(iterator: AsyncIterator<Chunk>): Promise<void> {
    const signal = this.#signal;
    try {
      for (let steps = 1; ; steps++) {
        const { done, value } = await iterator.next();
        if (signal.aborted) return;
        if (done) break;
        takeChunk(this.#outcome, value, this.#listener);
        // A backend that never waits would block the event loop.
        if (steps % STEPS_IN_A_ROW === 0) await yieldToOthers();
        if (signal.aborted) return;
      }
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return;
    }
    this.#close();
    this.#resolve(this.#outcome);
  }

  readonly #stop = (): void => this.#fail(this.#signal.reason);

  #fail(thrown: unknown): void {
    const outcome = this.#outcome;
    const signal = this.#signal;
    const used = this.#chunks?.used?.();
    if (isUsage(used)) outcome.usage = usageOf(used);
    if (this.#iterator) leave(this.#iterator);
    this.#close();
    this.#resolve(signal.aborted ? stopped(outcome, signal.reason as StopReason) : failed(outcome, thrown));
  }

  /** Joins the text of the reply, once. */
  #close(): void {
    this.#signal.removeEventListener("abort", this.#stop);
    this.#outcome.reply = this.#listener.written.pieces.join("");
  }
}

/** Ends an iterator, without waiting for it. */
function leave(iterator: AsyncIterator<unknown>): void {
  try {
    iterator.return?.().catch(() => {});
  } catch {
    // The run has ended, so an error of `return` is ignored.
  }
}

function takeChunk(outcome: Outcome, chunk: Chunk, listener: RunListener): void {
  if ("note" in chunk && chunk.restart) listener.watch.restart();
  else listener.watch.alive();
  if ("text" in chunk && typeof chunk.text === "string") {
    if (listener.written.length + chunk.text.length > REPLY_LIMIT)
      throw new BackendError("the reply is longer than 4 MiB");
    if (chunk.text !== "") listener.text(chunk.text);
    if (chunk.usage === undefined) return;
  }
  if ("usage" in chunk && isUsage(chunk.usage)) outcome.usage = usageOf(chunk.usage);
  else if ("note" in chunk && typeof chunk.note?.name === "string") listener.note(chunk.note);
  else if ("model" in chunk && typeof chunk.model === "string") outcome.model = modelNamed(chunk.model);
  else if (!("alive" in chunk)) throw new TypeError("the backend yielded a value that is not a chunk");
}

function isUsage(used: Used | undefined): used is Used {
  return used !== undefined && isCount(used.input) && isCount(used.output);
}
function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const LATE: Partial<Record<StopReason, string>> = {
  timeout: "the turn passed its deadline",
  "no-answer": "the agent's backend did not begin to answer in time",
  silence: "the agent's backend stopped sending in the middle of its reply",
};

function stopped(outcome: Outcome, reason: StopReason): Outcome {
  const detail = LATE[reason];
  if (detail === undefined) return { ...outcome, status: reason as "cancelled" | "handed-back" };
  const mayRetry = reason === "no-answer" && outcome.reply === "";
  return { ...outcome, status: mayRetry ? "retry" : "failed", error: { name: "turn-timeout", detail } };
}

function failed(outcome: Outcome, thrown: unknown): Outcome {
  const known = thrown instanceof BackendError ? thrown : undefined;
  const error: TurnError =
    thrown instanceof GatewayError
      ? { name: thrown.name, detail: thrown.detail, budget: thrown.extra.budget }
      : {
          name: known?.isLate ? "turn-timeout" : "turn-failed",
          detail: known ? known.message : "the agent's backend failed",
        };
  const retry = known?.retryable === true && outcome.reply === "";
  return {
    ...outcome,
    status: retry ? "retry" : "failed",
    error,
    retryAfterMs: known?.retryAfterMs,
    // A budget is not a failure of the backend. A backend may also throw `undefined`: this is logged like an error.
    thrown: error.budget ? undefined : (thrown ?? new Error(`the backend threw ${thrown}`)),
  };
}
