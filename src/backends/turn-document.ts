import { cleanSentence } from "#kit/clean-words.ts";
import { BackendError } from "#kit/errors.ts";
import type { BackendMessage, BackendTurn, Chunk, Used } from "./backend.ts";
import { isObject, jsonOf } from "./json.ts";
import { isCount } from "./token-counts.ts";

/** The request to a program or a web service, as described in docs/agents.md. Names are only added to it. */
export type TurnDocument = {
  /** `summarise` is not a turn of a session: its message requests a summary of `history`, and the reply is that summary. */
  kind: "turn" | "summarise";
  turnId: string | null;
  sessionId: string | null;
  agent: string;
  attempt: number;
  model: string | null;
  instructions: string | null;
  skills: readonly { skillId: string; body: string }[];
  message: { text: string; outside: boolean; context: unknown };
  /** Oldest first. */
  history: readonly BackendMessage[];
  /** The number of older messages that were left out of `history`. */
  historyOmitted: number;
  /**
   * The value of the header x-gateway-hops, for agents without headers: the agent must repeat it in its requests to the gateway.
   */
  hops: number;
};

/** The number of characters of the conversation that are sent: the newest messages that fit. */
const HISTORY_CHARACTERS = 256 * 1024;

const SUMMARISE =
  "Summarise the conversation so far in as few words as keep what a later reader needs: names, numbers, decisions, and what is still open.";

export async function turnDocument(turn: BackendTurn, { history = true } = {}): Promise<TurnDocument> {
  return documentOf(turn, history ? await turn.history() : (turn.earlier ?? []));
}

/** The context's value; the text itself if it is not JSON. */
function contextOf({ context }: BackendTurn["message"]): unknown {
  if (context === undefined) return null;
  const value = jsonOf(context);
  return value === undefined ? context : value;
}

function documentOf(turn: BackendTurn, before: readonly BackendMessage[]): TurnDocument {
  const { history, historyOmitted } = newest(before);
  return {
    kind: "turn",
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    agent: turn.agent,
    attempt: turn.attempt,
    model: turn.model ?? null,
    instructions: turn.instructions ?? null,
    skills: turn.skills,
    message: { text: turn.message.text, outside: turn.message.outside, context: contextOf(turn.message) },
    history,
    historyOmitted,
    hops: turn.hops + 1,
  };
}

/** Asks for a summary in the form of a turn, so that an agent that knows only turns can answer it, too. */
export function summaryDocument(agent: string, messages: readonly BackendMessage[]): TurnDocument {
  return {
    kind: "summarise",
    turnId: null,
    sessionId: null,
    agent,
    attempt: 1,
    model: null,
    instructions: null,
    skills: [],
    message: { text: SUMMARISE, outside: false, context: null },
    history: messages,
    historyOmitted: 0,
    hops: 1,
  };
}

/** The newest messages with no more than `characters` in total, oldest first. */
export function newest(
  messages: readonly BackendMessage[],
  characters = HISTORY_CHARACTERS,
): { history: readonly BackendMessage[]; historyOmitted: number } {
  let from = messages.length;
  for (let left = characters; from > 0; from--) {
    left -= (messages[from - 1] as BackendMessage).text.length;
    if (left < 0) break;
  }
  return { history: from === 0 ? messages : messages.slice(from), historyOmitted: from };
}

/**
 * A piece of an answer, from the JSON of a line or an event. Throws a BackendError: the agent's own message for an `error`, else a message that it is
 * not a piece, which repeats nothing of it.
 */
export function readPiece(piece: unknown): Chunk {
  const { text, usage, model, alive, error } = Object(piece) as Partial<Record<string, unknown>>;
  if (typeof text === "string") return { text };
  if (isUsed(usage)) return { usage: usedOf(usage) };
  if (typeof model === "string" && model !== "" && model.length <= 256) return { model: cleanSentence(model) };
  if (alive === true) return { alive: true };
  if (isObject(error)) throw failureOf(error);
  throw new BackendError("the agent sent data that is not a piece of a reply");
}

function isUsed(value: unknown): value is Used {
  const { input, output, cached = 0, reasoning = 0 } = Object(value) as Record<string, unknown>;
  return [input, output, cached, reasoning].every(isCount);
}
function usedOf({ input, output, cached, reasoning }: Used): Used {
  return { input, output, cached, reasoning };
}

function failureOf({ message, retryable, retryAfterMs }: Readonly<Record<string, unknown>>): BackendError {
  const words = typeof message === "string" ? cleanSentence(message) : "";
  return new BackendError(words || "the agent failed without a reason", {
    retryable: retryable === true,
    ...(isCount(retryAfterMs) ? { retryAfterMs } : {}),
  });
}
