import type { StopSignal } from "#kit/stop-signal.ts";
import type { Used } from "#kit/usages.ts";
import type { Tool } from "#tools/tool.ts";

/**
 * Produces the replies of an agent. A backend runs one turn at a time per call and any number of calls at once. It stores nothing of a turn after its
 * iterator has ended. It stops when `signal` aborts: later chunks are discarded.
 */
export interface Backend {
  readonly kind: string;
  /** True if it calls a party that may call the gateway in turn: a turn with too many hops does not reach it. */
  readonly asksOutside?: boolean;
  /** The model names that it accepts; undefined: any. */
  readonly models: readonly string[] | undefined;
  /**
   * The reply, piece by piece, and at the end its usage. Throws a BackendError. Any other error counts as a failure that is not
   * worth another try.
   */
  run(turn: BackendTurn, signal: StopSignal): Chunks;
  /** The number of tokens of a text. Without this method it is one per four characters. */
  countTokens?(text: string): number;
  /** A summary that can stand for these messages in a later turn. Calls `used` once with the usage, also if it then fails. */
  summarise(messages: readonly BackendMessage[], signal: AbortSignal, used?: TellUsed): Promise<string>;
  /**
   * The number of tokens that the model can take at once; undefined if it is not known. A session near this limit is compacted.
   */
  contextTokens?(model: string | undefined): number | undefined;
  /**
   * The time, in milliseconds, for which it is not asked, because everything that could answer such a turn has failed several
   * times in a row. If it is 0, the backend may be asked.
   */
  restMs?(model: string | undefined): number;
  /** Closes its processes and connections, each as soon as no turn uses it. It accepts no turn afterwards. */
  close?(): Promise<void>;
}

/**
 * A message of role `system` is the summary of compacted messages or, with `instructions`, text that a caller adds to the agent's
 * own instructions.
 */
export type BackendMessage = {
  role: "user" | "assistant" | "system" | "tool";
  text: string;
  outside: boolean;
  instructions?: true;
};

export type BackendTurn = {
  turnId: string;
  sessionId: string;
  agent: string;
  attempt: number;
  model: string | undefined;
  instructions: string | undefined;
  /** Skills that this turn was started with. */
  skills: readonly { skillId: string; body: string }[];
  /** `context` is the data of the message, as JSON. */
  message: { text: string; outside: boolean; context: string | undefined };
  /** The number of announcements and agents that led to this turn. A party outside of the gateway gets one more. */
  hops: number;
  /**
   * The messages from before the session began. No message of the session holds them, but `history()` does. Absent or empty for
   * most.
   */
  earlier?: readonly BackendMessage[];
  /** The conversation before this message, oldest first. It is read on demand: most echo turns never need it. */
  history(): readonly BackendMessage[] | Promise<readonly BackendMessage[]>;
  /** The tools that it may call while it answers: skills and servers of tools. Each call appears on the turn's timeline. */
  tools(signal: StopSignal): readonly Tool[] | Promise<readonly Tool[]>;
  readonly watch: SilenceWatch;
  /**
   * Called before each further request of the turn, with its usage so far and the tokens of the next prompt. Rejects with `budget-exceeded` if a budget has no
   * room: then the model must not be asked. Absent where no budget applies.
   */
  requireBudget?: ((used: Used, promptTokens: number) => Promise<void>) | undefined;
  /** True if it may try again after a failure. Each call takes from the agent's budget of retries. */
  mayRetry(): boolean;
  /** Skills that it may load by a tool, in addition to those it was started with. */
  offered(): readonly { skillId: string; description: string }[];
};

/** Watches how long the backend of a turn gives no sign. */
export type SilenceWatch = {
  /** Waits for work that is not the agent's, such as loading code, which does not count as silence. */
  pause<T>(work: Promise<T>): Promise<T>;
  /**
   * Sets the function that is called when the backend is silent for too long. If it returns true, the backend continues with another model, which has
   * the same time to start; otherwise the turn is stopped.
   */
  whenLate(goesOn: () => boolean): void;
};

export type { Used };

/** `model` is the model that answered, if it is not the agent's. */
export type TellUsed = (usage: Used, model?: string) => void;

/**
 * The chunks of a reply. A reader that stops early gets no more chunks, and calls `used()` for the usage so far, if it is known.
 */
export type Chunks = AsyncIterable<Chunk> & { used?(): Used | undefined };

/**
 * A piece of a run. `usage` is the total so far, and replaces the one before. `model` is the model that answers, if it is not the
 * one that was requested. A `note` is added to the turn's timeline. Each chunk is a sign of life, and `alive` is only that. A note with
 * `restart` is not a sign of life: another model is requested now, and the limit for its first sign of life starts.
 */
export type Chunk =
  | { text: string; usage?: Used }
  | { usage: Used }
  | { model: string }
  | { note: { name: string; detail: Readonly<Record<string, unknown>> }; restart?: true }
  | { alive: true };
