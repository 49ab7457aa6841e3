import type { TurnStep, TurnSteps } from "#core/turns/turn-events.ts";
import { failureOf } from "#core/turns/turns.ts";
import type { ChatCompletionChunk } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Turn, Usage } from "#store/store.ts";
import { headOf, usageOf } from "./present.ts";

type Choice = ChatCompletionChunk["choices"][number];

/** A turn's steps as chunks. Throws where the turn fails, or where what was told cannot be taken back. */
export const createChunks = (turn: Turn, model: string, includeUsage: boolean) => {
  const head = headOf(turn, model, "chat.completion.chunk");
  const noUsage = includeUsage ? { usage: null } : {};
  let hasBegun = false;
  let told = 0;

  const chunk = (delta: Choice["delta"], finish_reason: Choice["finish_reason"] = null): ChatCompletionChunk => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...noUsage,
  });
  const begin = (): ChatCompletionChunk[] => {
    if (hasBegun) return [];
    hasBegun = true;
    const { turnId: turn_id, sessionId: session_id } = turn;
    return [{ ...chunk({ role: "assistant", content: "" }), turn_id, session_id }];
  };
  const say = (content: string): ChatCompletionChunk[] => {
    told += content.length;
    return [...begin(), chunk({ content })];
  };
  const end = (usage: Usage): ChatCompletionChunk[] => [
    ...begin(),
    chunk({}, "stop"),
    ...(includeUsage ? [{ ...head, choices: [], usage: usageOf(usage) }] : []),
  ];

  return {
    begin,
    /** What a step is to the reader; undefined for one that it is not told. */
    of(step: TurnStep): ChatCompletionChunk[] | undefined {
      if (step.kind === "delta") return say(step.text);
      const { entry } = step;
      const { turnId } = turn;
      switch (entry.name) {
        case "message.created":
          if (told === 0 || entry.role !== "assistant") return undefined;
          throw new GatewayError("turn-failed", "The reply was begun anew, after a part of it was sent.", { turnId });
        case "message.completed":
          // Who comes when it is written already gets it in one piece.
          return told < entry.text.length ? say(entry.text.slice(told)) : undefined;
        case "turn.completed":
          return end(entry.usage);
        case "turn.failed":
          throw failureOf({ turnId, status: "failed", error: entry.error }, false);
        case "turn.cancelled":
          throw failureOf({ turnId, status: "cancelled", error: undefined }, false);
        default:
          return undefined;
      }
    },
  };
};

const DONE = { done: true, value: undefined } as const;

/** Chunks one at a time. A class and no generator: one that waits could not be left before its next step. */
export class ChunkStream implements AsyncIterableIterator<ChatCompletionChunk> {
  readonly #steps: TurnSteps<ChatCompletionChunk[]>;
  readonly #ready: ChatCompletionChunk[] = [];
  #asked: Promise<IteratorResult<ChatCompletionChunk[], undefined>> | undefined = undefined;
  /** What was asked for first has come. */
  #hasFirst = true;
  #failure: { error: unknown } | undefined = undefined;

  constructor(steps: TurnSteps<ChatCompletionChunk[]>) {
    this.#steps = steps;
  }

  /** Resolves when there is something to tell; rejects where the turn fails sooner, as `next` will then. */
  first(): Promise<unknown> {
    this.#asked = this.#steps.next();
    return this.#asked;
  }

  /** To be told before all else that comes. */
  tell(chunks: readonly ChatCompletionChunk[]): void {
    this.#ready.push(...chunks);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    for (;;) {
      const value = this.#ready.shift();
      if (value !== undefined) return { done: false, value };
      const asked = this.#asked ?? this.#steps.next();
      this.#asked = undefined;
      const step = await asked;
      if (step.done) return DONE;
      this.#ready.push(...step.value);
    }
  }

  /** In place of `next`: the next chunk, or undefined where there is none yet; then `wake` is called, as soon as it is worth another look. */
  pull(wake: () => void): IteratorResult<ChatCompletionChunk, undefined> | undefined {
    for (;;) {
      const value = this.#ready.shift();
      if (value !== undefined) return { done: false, value };
      if (this.#failure) throw this.#failure.error;
      const asked = this.#asked;
      if (asked) {
        this.#asked = undefined;
        this.#takeFirst(asked, wake);
        return undefined;
      }
      const step = this.#hasFirst ? this.#steps.pull(wake) : undefined;
      if (!step) return undefined;
      if (step.done) return DONE;
      this.#ready.push(...step.value);
    }
  }

  #takeFirst(asked: Promise<IteratorResult<ChatCompletionChunk[], undefined>>, wake: () => void): void {
    this.#hasFirst = false;
    asked
      .then(
        ({ value }) => this.#ready.push(...(value ?? [])),
        (error: unknown) => {
          this.#failure = { error };
        },
      )
      .finally(() => {
        this.#hasFirst = true;
        wake();
      });
  }

  async return(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    await this.#steps.return();
    return DONE;
  }
}
