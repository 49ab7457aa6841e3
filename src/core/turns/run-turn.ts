import type { Backend, BackendTurn, Chunk, Chunks, SilenceWatch, Used } from "#backends/backend.ts";
import { orAborted } from "#kit/abort.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import type { Stop, StopSignal } from "#kit/stop-signal.ts";
import { modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
import type { TurnError, Usage } from "#store/store.ts";

/** Why a running turn is stopped from outside: its signal is aborted with one of these. */
export type StopReason = "cancelled" | "timeout" | "no-answer" | "silence" | "handed-back";

export type Outcome = {
  status: "completed" | "failed" | "cancelled" | "retry" | "handed-back";
  reply: string;
  error?: TurnError;
  usage: Usage;
  retryAfterMs?: number | undefined;
  /** The model that answered, where it is not the one that was asked for. */
  model?: string | undefined;
  /** The error that the backend threw, for the log alone. */
  thrown?: unknown;
};

/** Learns of a run while it goes on. */
type RunListener = {
  text(text: string): void;
  /** All that was given to `text`. */
  readonly written: { readonly pieces: readonly string[]; readonly length: number };
  note(note: Note): void;
  readonly watch: Pick<TurnWatch, "alive" | "anew">;
};
export type Note = Extract<Chunk, { note: unknown }>["note"];

const STEPS_IN_A_ROW = 2048;
/** A reply that grows past this is a backend gone wrong. */
const REPLY_LIMIT = 4 * 1024 * 1024;

/**
 * Runs a backend on a turn; answers how it ended. Never throws and never outlasts `signal`: a backend that ignores it is left behind, and what
 * it does later touches nothing.
 */
export const runTurn = async (
  backend: Backend,
  turn: BackendTurn,
  signal: StopSignal,
  listener: RunListener,
): Promise<Outcome> => {
  const outcome: Outcome = { status: "completed", reply: "", usage: NO_USAGE };
  let chunks: Chunks | undefined;
  let iterator: AsyncIterator<Chunk> | undefined;
  try {
    signal.throwIfAborted();
    if (backend.asksOutside && isLoop(turn.hops))
      throw new BackendError(`the agent was not asked: ${loopWords(turn.hops)}`);
    chunks = backend.run(turn, signal);
    iterator = chunks[Symbol.asyncIterator]();
    // One wait for the whole turn. A wait for each chunk would leave a reaction behind with every piece of the reply.
    await orAborted(takeChunks(iterator, outcome, signal, listener), signal);
  } catch (thrown) {
    const used = chunks?.used?.();
    if (isUsage(used)) outcome.usage = usageOf(used);
    if (iterator) leave(iterator);
    outcome.reply = listener.written.pieces.join("");
    return signal.aborted ? stopped(outcome, signal.reason as StopReason) : failed(outcome, thrown);
  }
  // The text of a reply is put together once, at its end.
  outcome.reply = listener.written.pieces.join("");
  return outcome;
};

/** Takes all chunks; after an abort none. */
const takeChunks = async (
  iterator: AsyncIterator<Chunk>,
  outcome: Outcome,
  signal: StopSignal,
  listener: RunListener,
): Promise<void> => {
  for (let steps = 1; ; steps++) {
    const { done, value } = await iterator.next();
    signal.throwIfAborted();
    if (done) return;
    takeChunk(outcome, value, listener);
    // A backend that never waits would let nobody else run.
    if (steps % STEPS_IN_A_ROW === 0) await new Promise((resolve) => setImmediate(resolve));
  }
};

/** Ends an iterator, without waiting for it. */
const leave = (iterator: AsyncIterator<unknown>): void => {
  try {
    iterator.return?.().catch(() => {});
  } catch {
    // A backend's `return` that throws has nothing left to tell.
  }
};

const takeChunk = (outcome: Outcome, chunk: Chunk, listener: RunListener): void => {
  if ("note" in chunk && chunk.anew) listener.watch.anew();
  else listener.watch.alive();
  if ("text" in chunk && typeof chunk.text === "string") {
    if (listener.written.length + chunk.text.length > REPLY_LIMIT)
      throw new BackendError("the reply is longer than 4 MiB");
    if (chunk.text !== "") listener.text(chunk.text);
  } else if ("note" in chunk && typeof chunk.note?.name === "string") listener.note(chunk.note);
  else if ("usage" in chunk && isUsage(chunk.usage)) outcome.usage = usageOf(chunk.usage);
  else if ("model" in chunk && typeof chunk.model === "string") outcome.model = modelNamed(chunk.model);
  else if (!("alive" in chunk)) throw new TypeError("the backend yielded something that is no chunk");
};

const isUsage = (used: Used | undefined): used is Used =>
  used !== undefined && isCount(used.input) && isCount(used.output);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const LATE: Partial<Record<StopReason, string>> = {
  timeout: "the turn passed its deadline",
  "no-answer": "the agent's backend did not begin to answer in time",
  silence: "the agent's backend fell silent in the middle of its reply",
};

const stopped = (outcome: Outcome, reason: StopReason): Outcome => {
  const detail = LATE[reason];
  if (detail === undefined) return { ...outcome, status: reason as "cancelled" | "handed-back" };
  const isWorthIt = reason === "no-answer" && outcome.reply === "";
  return { ...outcome, status: isWorthIt ? "retry" : "failed", error: { name: "turn-timeout", detail } };
};

const failed = (outcome: Outcome, thrown: unknown): Outcome => {
  const known = thrown instanceof BackendError ? thrown : undefined;
  const error: TurnError =
    thrown instanceof GatewayError
      ? { name: thrown.name, detail: thrown.detail }
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
    // Nothing is as bad as something, and has to be logged.
    thrown: thrown ?? new Error(`the backend threw ${thrown}`),
  };
};

/** The time that a turn may run, and that its backend may be silent. */
type WatchLimits = { deadlineMs: number; firstByteMs: number; silenceMs: number };

/** Stops a turn that passes its deadline, or whose backend does not begin, or falls silent. A sign of life only notes the time. */
export class TurnWatch implements SilenceWatch {
  readonly #clock: Clock;
  readonly #limits: WatchLimits;
  readonly #stop: Stop;
  readonly #deadline: number;
  #lastSign: number;
  #silenceMs: number;
  #hasBegun = false;
  #paused = 0;
  #goesOn: (() => boolean) | undefined = undefined;
  #stopTimer: (() => void) | undefined = undefined;

  /** `spentMs`: the time of the earlier attempts. */
  constructor(clock: Clock, limits: WatchLimits, spentMs: number, stop: Stop) {
    this.#clock = clock;
    this.#limits = limits;
    this.#stop = stop;
    this.#lastSign = clock.monotonic();
    this.#deadline = this.#lastSign + limits.deadlineMs - spentMs;
    this.#silenceMs = limits.firstByteMs;
    this.#lookAgain(this.#lastSign);
  }

  /** The backend gave a sign. */
  alive(): void {
    this.#hasBegun = true;
    this.#allow(this.#limits.silenceMs);
  }

  /** Gives as long to begin as at first: somebody else is asked now. */
  anew(): void {
    this.#allow(this.#limits.firstByteMs);
  }

  /** Asked before a late turn is stopped: true where the backend goes on, with somebody else. */
  whenLate(goesOn: () => boolean): void {
    this.#goesOn = goesOn;
  }

  /** Waits for work that is not the backend's, a tool, without taking it for silence. Afterwards the backend has as long as to begin. */
  async pause<T>(work: Promise<T>): Promise<T> {
    this.#paused++;
    try {
      return await work;
    } finally {
      this.#paused--;
      this.anew();
    }
  }

  stop(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #allow(ms: number): void {
    this.#lastSign = this.#clock.monotonic();
    this.#silenceMs = ms;
  }

  #lookAgain(now: number): void {
    this.#stopTimer?.();
    const silentAt = (this.#paused > 0 ? now : this.#lastSign) + this.#silenceMs;
    // Never later than the shorter limit, which the next sign may bring into force: signs are many, and set no timer.
    const { firstByteMs, silenceMs } = this.#limits;
    const at = Math.min(this.#deadline, silentAt, now + Math.min(firstByteMs, silenceMs));
    this.#stopTimer = this.#clock.after(at - now, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.monotonic();
    const isSilent = this.#paused === 0 && this.#lastSign + this.#silenceMs <= now;
    if (this.#deadline <= now) {
      this.#stop.abort("timeout");
    } else if (isSilent && !this.#goesOn?.()) {
      this.#stop.abort(this.#hasBegun ? "silence" : "no-answer");
    } else {
      if (isSilent) this.anew();
      this.#lookAgain(now);
    }
  }
}
