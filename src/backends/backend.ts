/**
 * What answers for an agent. A backend runs one turn at a time per call and any number of calls at once; it keeps nothing of a turn
 * after its iterator ended, and it stops when `signal` aborts: what it yields later is thrown away.
 */
export interface Backend {
  readonly kind: string;
  /** The models it takes by name; undefined: any. */
  readonly models: readonly string[] | undefined;
  /**
   * The reply, piece by piece, and at the end what it used. Throws a BackendError, or anything: what is not a BackendError
   * is taken as a failure that is not worth another try.
   */
  run(turn: BackendTurn, signal: AbortSignal): AsyncIterable<Chunk>;
  /**
   * The whole reply of a backend that needs not wait for it; undefined where it must, and then `run` is asked. What can be
   * stopped costs a signal, a stream and a dozen promises: more than all the rest of a short turn.
   */
  replyAtOnce?: ((turn: BackendTurn) => readonly Chunk[] | undefined) | undefined;
  /** Tokens of a text, as it counts them; without it, one per four characters. */
  countTokens?(text: string): number;
  /** A summary that can stand for these messages in a later turn. Tells `used` what it took, also where it fails then. */
  summarise(messages: readonly BackendMessage[], signal: AbortSignal, used?: (usage: Used) => void): Promise<string>;
}

export type BackendMessage = { role: "user" | "assistant" | "system" | "tool"; text: string; outside: boolean };

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
  /** The conversation before this message, oldest first. Read on demand: most echo turns never ask. */
  history(): Promise<BackendMessage[]>;
};

export type Used = { input: number; output: number };
export type Chunk = { text: string } | { usage: Used };
