import type { Backend, BackendTurn, Chunk, ChunkHearer, Chunks, HeardChunks, Used } from "#backends/backend.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import { modelNamed, usageOf } from "#kit/usages.ts";
import type { TurnError, Usage } from "#store/store.ts";

/** Why a running turn is stopped from outside: its controller is aborted with one of these. */
export type StopReason = "cancelled" | "timeout" | "no-answer" | "silence" | "handed-back";

export type Outcome = {
  status: "completed" | "failed" | "cancelled" | "retry" | "handed-back";
  reply: string;
  error: TurnError | undefined;
  usage: Usage;
  retryAfterMs: number | undefined;
  /** The model that answered, where it is not the one that was asked for. */
  model: string | undefined;
  /** What the backend threw, for the log alone. */
  thrown: unknown;
};

/** Who hears of a run while it goes on. */
export interface RunListener {
  text(text: string): void;
  /** All that was told to `text`. */
  readonly written: { readonly pieces: readonly string[]; readonly length: number };
  note(note: Note): void;
  /** Any sign of life. */
  alive(): void;
  /** Somebody else is asked now. */
  anew(): void;
  /** Once, and last. Must not throw. */
  over(outcome: Outcome): void;
}
export type Note = Extract<Chunk, { note: unknown }>["note"];

const STEPS_IN_A_ROW = 2048;
/** A reply that grows past this is a backend gone wrong. */
const REPLY_LIMIT = 4 * 1024 * 1024;

/** How a turn ended whose backend had the whole reply at once; undefined when it must be run. Never throws. */
export const runAtOnce = (backend: Backend, turn: BackendTurn): Outcome | undefined => {
  if (!backend.replyAtOnce) return undefined;
  const outcome = newOutcome();
  try {
    const chunks = backend.replyAtOnce(turn);
    if (!chunks) return undefined;
    for (const chunk of chunks) takeChunk(outcome, chunk);
    return outcome;
  } catch (thrown) {
    return fail(outcome, thrown);
  }
};

/**
 * Runs a backend on a turn and tells how it ended, perhaps before this returns. Never throws and never outlasts `signal`: a backend that ignores it
 * is left behind, and what it does later touches nothing.
 */
export const runTurn = (backend: Backend, turn: BackendTurn, signal: StopSignal, listener: RunListener): void => {
  const outcome = newOutcome();
  try {
    if (backend.asksOutside && isLoop(turn.hops))
      throw new BackendError(`the agent was not asked: ${loopWords(turn.hops)}`);
    const running = backend.run(turn, signal);
    if ("hear" in running) new HeardTurn(running as HeardChunks, outcome, signal, listener).begin();
    else readTurn(running, outcome, signal, listener).then((ended) => listener.over(ended));
  } catch (thrown) {
    listener.over(failOrStop(outcome, thrown, signal));
  }
};

/** The same for chunks that are read. */
const readTurn = async (
  running: Chunks,
  outcome: Outcome,
  signal: StopSignal,
  listener: RunListener,
): Promise<Outcome> => {
  // One listener for the turn, and no Promise.race: that would leave a reaction behind with every piece of the reply.
  let interrupt = () => {};
  const onAbort = () => interrupt();
  signal.addEventListener("abort", onAbort, { once: true });
  const nextOf = (iterator: AsyncIterator<Chunk>): Promise<IteratorResult<Chunk> | "interrupted"> =>
    new Promise((resolve, reject) => {
      interrupt = () => resolve("interrupted");
      iterator.next().then(resolve, reject);
    });
  const soFar = (): Outcome => {
    outcome.reply = listener.written.pieces.join("");
    return outcome;
  };
  let steps = 0;
  let chunks: AsyncIterator<unknown> | undefined;
  try {
    const iterator = running[Symbol.asyncIterator]();
    chunks = iterator;
    for (;;) {
      const step = signal.aborted ? "interrupted" : await nextOf(iterator);
      if (step === "interrupted" || signal.aborted) {
        takeUsed(outcome, running);
        leave(iterator);
        return stop(soFar(), signal.reason as StopReason);
      }
      if (step.done) return soFar();
      // A backend that never waits would let nobody else run.
      if (++steps % STEPS_IN_A_ROW === 0) await new Promise((resolve) => setImmediate(resolve));
      tellChunk(outcome, step.value, listener);
    }
  } catch (thrown) {
    takeUsed(outcome, running);
    if (chunks) leave(chunks);
    return failOrStop(soFar(), thrown, signal);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
};

/** The same for chunks that are heard: no promise for a piece, nor for the turn. */
class HeardTurn implements ChunkHearer {
  readonly #chunks: HeardChunks;
  readonly #outcome: Outcome;
  readonly #signal: StopSignal;
  readonly #listener: RunListener;
  #isOver = false;

  constructor(chunks: HeardChunks, outcome: Outcome, signal: StopSignal, listener: RunListener) {
    this.#chunks = chunks;
    this.#outcome = outcome;
    this.#signal = signal;
    this.#listener = listener;
  }

  begin(): void {
    if (this.#signal.aborted) {
      this.#leave(stop(this.#outcome, this.#signal.reason as StopReason));
      return;
    }
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    try {
      this.#chunks.hear(this);
    } catch (thrown) {
      this.#leave(failOrStop(this.#cut(), thrown, this.#signal));
    }
  }

  chunk(chunk: Chunk): void {
    if (this.#isOver) return;
    try {
      tellChunk(this.#outcome, chunk, this.#listener);
    } catch (thrown) {
      this.#leave(fail(this.#cut(), thrown));
    }
  }

  text(text: string): void {
    if (this.#isOver) return;
    try {
      tellText(text, this.#listener);
    } catch (thrown) {
      this.#leave(fail(this.#cut(), thrown));
    }
  }

  over(failed: { error: unknown } | undefined): void {
    if (!this.#isOver) this.#end(failed ? fail(this.#soFar(), failed.error) : this.#soFar());
  }

  // Who stops a turn may be in the middle of what it does to the store: the end is told after that.
  readonly #onAbort = (): void => {
    this.#isOver = true;
    const outcome = this.#cut();
    leave(this.#chunks);
    queueMicrotask(() => this.#end(stop(outcome, this.#signal.reason as StopReason)));
  };

  /** With the reply as far as it was told: it is put together once, and not with each piece. */
  #soFar(): Outcome {
    this.#outcome.reply = this.#listener.written.pieces.join("");
    return this.#outcome;
  }

  /** The same of one that is not heard to its end. */
  #cut(): Outcome {
    takeUsed(this.#outcome, this.#chunks);
    return this.#soFar();
  }

  #leave(ended: Outcome): void {
    this.#isOver = true;
    leave(this.#chunks);
    this.#end(ended);
  }

  #end(ended: Outcome): void {
    this.#isOver = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#listener.over(ended);
  }
}

/** The text of a reply is put together once, at its end. */
const tellChunk = (outcome: Outcome, chunk: Chunk, listener: RunListener): void => {
  if ("text" in chunk && typeof chunk.text === "string") {
    tellText(chunk.text, listener);
    if (chunk.usage) takeUsage(outcome, chunk.usage);
    return;
  }
  takeChunk(outcome, chunk);
  if ("note" in chunk && chunk.anew) listener.anew();
  else listener.alive();
  if ("note" in chunk) listener.note(chunk.note);
};

const tellText = (text: string, listener: RunListener): void => {
  requireRoom(listener.written.length, text);
  listener.alive();
  if (text !== "") listener.text(text);
};

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const newOutcome = (): Outcome => ({
  status: "completed",
  reply: "",
  error: undefined,
  usage: { input: 0, output: 0 },
  retryAfterMs: undefined,
  model: undefined,
  thrown: undefined,
});

const requireRoom = (length: number, text: string): void => {
  if (length + text.length > REPLY_LIMIT) throw new BackendError("the reply is longer than 4 MiB");
};

/** Adds a chunk to the outcome; answers the text in it. */
const takeChunk = (outcome: Outcome, chunk: Chunk): string => {
  if ("text" in chunk && typeof chunk.text === "string") {
    requireRoom(outcome.reply.length, chunk.text);
    outcome.reply += chunk.text;
    return chunk.text;
  }
  if ("usage" in chunk && chunk.usage && takeUsage(outcome, chunk.usage)) return "";
  if ("model" in chunk && typeof chunk.model === "string") outcome.model = modelNamed(chunk.model);
  else if (!("alive" in chunk) && !("note" in chunk && typeof chunk.note?.name === "string"))
    throw new TypeError("the backend yielded something that is no chunk");
  return "";
};

/** False where it is none. */
const takeUsage = (outcome: Outcome, used: Used): boolean => {
  if (!isCount(used.input) || !isCount(used.output)) return false;
  outcome.usage = usageOf(used);
  return true;
};

/** What was used by who is stopped, and tells it no more. */
const takeUsed = (outcome: Outcome, chunks: Chunks): void => {
  const used = chunks.used?.();
  if (used && isCount(used.input) && isCount(used.output)) outcome.usage = usageOf(used);
};

const LATE: Partial<Record<StopReason, string>> = {
  timeout: "the turn passed its deadline",
  "no-answer": "the agent's backend did not begin to answer in time",
  silence: "the agent's backend fell silent in the middle of its reply",
};

const stop = (outcome: Outcome, reason: StopReason): Outcome => {
  const detail = LATE[reason];
  if (detail === undefined) return { ...outcome, status: reason as "cancelled" | "handed-back" };
  const isWorthIt = reason === "no-answer" && outcome.reply === "";
  return { ...outcome, status: isWorthIt ? "retry" : "failed", error: { name: "turn-timeout", detail } };
};

const fail = (outcome: Outcome, thrown: unknown): Outcome => {
  const known = thrown instanceof BackendError ? thrown : undefined;
  const error: TurnError =
    thrown instanceof GatewayError
      ? { name: thrown.name, detail: thrown.detail }
      : {
          name: known?.isLate ? "turn-timeout" : "turn-failed",
          detail: known ? known.message : "the agent's backend failed",
        };
  const retry = known?.retryable === true && outcome.reply === "";
  // Nothing is as bad as something, and has to be heard of.
  const told = thrown ?? new Error(`the backend threw ${thrown}`);
  return { ...outcome, status: retry ? "retry" : "failed", error, retryAfterMs: known?.retryAfterMs, thrown: told };
};

const failOrStop = (outcome: Outcome, thrown: unknown, signal: StopSignal): Outcome =>
  signal.aborted ? stop(outcome, signal.reason as StopReason) : fail(outcome, thrown);

/** Tells an iterator to end, without waiting for it. */
const leave = (iterator: AsyncIterator<unknown>): void => {
  try {
    iterator.return?.().catch(() => {});
  } catch {
    // A backend's `return` that throws has nothing left to tell.
  }
};
