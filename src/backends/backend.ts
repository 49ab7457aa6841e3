import type { StopSignal } from "#kit/stop-signal.ts";
import type { Tool } from "#tools/tool.ts";

/**
 * What answers for an agent. A backend runs one turn at a time per call and any number of calls at once; it keeps nothing of a turn
 * after its iterator ended, and it stops when `signal` aborts: what it yields later is thrown away.
 */
export interface Backend {
  readonly kind: string;
  /** It asks somebody who may call the gateway in turn: what came through too many hops does not reach it. */
  readonly asksOutside?: boolean;
  /** The models it takes by name; undefined: any. */
  readonly models: readonly string[] | undefined;
  /**
   * The reply, piece by piece, and at the end what it used. Throws a BackendError, or anything: what is not a BackendError
   * is taken as a failure that is not worth another try.
   */
  run(turn: BackendTurn, signal: StopSignal): Chunks;
  /** Tokens of a text, as it counts them; without it, one per four characters. */
  countTokens?(text: string): number;
  /** A summary that can stand for these messages in a later turn. Tells `used` once what it took, also where it fails then. */
  summarise(messages: readonly BackendMessage[], signal: AbortSignal, used?: TellUsed): Promise<string>;
  /** What it can be told at once, in tokens, by the model that is named; undefined where it does not know. Near it a session is compacted. */
  contextTokens?(model: string | undefined): number | undefined;
  /**
   * For how long nothing is asked of it, in milliseconds, as all that could answer such a turn has failed several times in a row; 0: it is asked.
   */
  restMs?(model: string | undefined): number;
  /** Ends what it keeps open, processes and connections, each as soon as no turn needs it any more; takes no turn afterwards. */
  close?(): Promise<void>;
}

/** Of role `system` is the summary of what was compacted, and, marked so, what a caller has the agent told beside the agent's own instructions. */
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
  /** `context` is what came beside the text, as JSON. */
  message: { text: string; outside: boolean; context: string | undefined };
  /** Through how many announcements and agents came what started it: who is asked outside of the gateway is told one more. */
  hops: number;
  /** What was said before the session began, and is in no message of it; in `history()`, too. Absent or empty for most. */
  earlier?: readonly BackendMessage[];
  /** The conversation before this message, oldest first. Read on demand: most echo turns never ask. */
  history(): readonly BackendMessage[] | Promise<readonly BackendMessage[]>;
  /** What it may call while it answers, skills and servers of tools. Each call of one is told on the turn's timeline. */
  tools(signal: StopSignal): readonly Tool[] | Promise<readonly Tool[]>;
  /** Waits for what is not the agent's doing, as code that is loaded: no limit of how long it may be silent counts meanwhile. */
  aside<T>(work: Promise<T>): Promise<T>;
  /**
   * Who is asked when it gave no sign for too long: true where it goes on with somebody else, who has as long to begin; else the turn is stopped.
   */
  whenLate(goesOn: () => boolean): void;
  /** Whether it may ask again what failed: each time takes from the agent's budget of retries. */
  mayRetry(): boolean;
  /** Skills that it may load by a tool, beside those it was started with. */
  offered(): readonly { skillId: string; description: string }[];
};

/**
 * `cached` is that part of `input` that the provider had read before, `reasoning` that part of `output` that no reader sees. `cost`, in
 * billionths, is told by a backend that knows prices: those of the models that were asked, as they were when it was made.
 */
export type Used = {
  input: number;
  output: number;
  cached?: number | undefined;
  reasoning?: number | undefined;
  cost?: number | undefined;
};

/** `model` is which one answered, where it is not the agent's. */
export type TellUsed = (usage: Used, model?: string) => void;

/** The chunks of a reply. Who stops them hears none any more, and asks here what was used for them, where that is known. */
export type Chunks = AsyncIterable<Chunk> & { used?(): Used | undefined };

/**
 * A piece of a run. `usage` is all that was used so far, and replaces what was said before. `model` is which one answers, where it is not
 * the one that was asked for. A `note` goes on the turn's timeline. Each of them is a sign of life; `alive` is nothing else. A note with `anew` is
 * none: another is asked now, who has as long to begin as the first had.
 */
export type Chunk =
  | { text: string }
  | { usage: Used }
  | { model: string }
  | { note: { name: string; detail: Readonly<Record<string, unknown>> }; anew?: true }
  | { alive: true };
