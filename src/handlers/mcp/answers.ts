import type { McpAnswer, McpTask, McpTaskStatus } from "#core/mcp-tools.ts";
import { failureOf, isEnded } from "#core/turns/turns.ts";
import { type ErrorName, errors } from "#generated/errors.ts";
import type { Turn as ShownTurn } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { ended } from "#kit/fault-words.ts";
import { NO_USAGE, showCompleted, showUsage } from "#kit/usages.ts";
import type { Turn } from "#store/store.ts";
import { shapesOf, sourceOf } from "./sources.ts";

type Hide = (text: string) => string;

const { TurnStatus } = shapesOf(sourceOf("turn_get").outputSchema);

/** The JSON Schema of a turn in the answers of the tools that start one. There may be hundreds of them: `turn_get` has the schemas of the parts. */
export const TURN_OUTPUT = {
  type: "object",
  additionalProperties: false,
  required: ["turn_id", "session_id", "status"],
  properties: {
    turn_id: { type: "string" },
    session_id: { type: "string" },
    status: TurnStatus,
    reply: { type: "string" },
    usage: { type: "object" },
    error: { type: "object" },
  },
};

/** The answer of a tool for its turn: the reply, the failure, or how to get them later. */
export function answerOfTurn(turn: Turn, hide: Hide): McpAnswer {
  const { turnId: turn_id, sessionId: session_id, status, reply } = turn;
  const ids = { turn_id, session_id, status };
  if (!isEnded(turn)) return { text: laterWords(turn), structured: ids };
  const usage = turn.usage && { usage: showUsage(turn.usage) };
  if (status === "completed") {
    const structured = { ...ids, reply: reply ?? "", usage: showCompleted(turn.usage ?? NO_USAGE) };
    return { text: reply || EMPTY, note: noteOf(session_id), structured };
  }
  const failure = failureOf(turn, false);
  const { name, detail } = failure;
  const error = { name, title: errors[name].title, ...(detail !== undefined && { detail: hide(detail) }) };
  const structured = { ...ids, ...(reply && { reply }), ...usage, error };
  return { ...answerOfError(failure, hide), structured };
}

/** A turn, as REST shows it, in words: its reply, its failure, or how to get them later. */
export function textOfShown({ turn_id: turnId, status, reply, error }: ShownTurn, hide: Hide): string {
  if (status === "queued" || status === "running") return laterWords({ turnId, status });
  if (status === "completed") return reply || EMPTY;
  const failure = failureOf({ turnId, status, error: (error ?? undefined) as Turn["error"] }, false);
  return hide(wordsOf(failure));
}

/** How to continue the conversation, for models that read only text. */
export function noteOf(sessionId: string): string {
  return `To continue this conversation, send the next message with the session ${sessionId}.`;
}

const EMPTY = "The agent sent an empty reply.";

function laterWords({ turnId, status }: Pick<Turn, "turnId" | "status">): string {
  const state = status === "queued" ? "is waiting to start" : "is still running";
  return `The turn ${turnId} ${state}. Call turn_get with this turn_id and wait_seconds 50 to get the reply.`;
}

/** Errors that refuse the caller, or that a caller cannot act on. */
const THROWN: ReadonlySet<ErrorName> = new Set(["forbidden", "unauthenticated", "key-expired", "internal"]);

/** An error as the answer of a tool. Throws an error that refuses access, and one of the gateway itself. */
export function answerOfError(thrown: unknown, hide: Hide): McpAnswer {
  const error = GatewayError.from(thrown);
  if (THROWN.has(error.name)) throw thrown;
  return { text: hide(wordsOf(error)), isError: true, error: error.name };
}

/** Limits the text of an error, which may repeat a caller's own text. */
const LONGEST_WORDS = 2_000;

/** The words of a spent budget have the time of its reset. */
function wordsOf({ name, detail, extra: { retryAfterMs, budget } }: GatewayError): string {
  const { title, meaning } = errors[name];
  const words = `${title}: ${detail ?? meaning}`.slice(0, LONGEST_WORDS);
  if (retryAfterMs === undefined || budget) return words;
  return `${ended(words)} Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`;
}

/** The turn as a task. */
export function taskOf(turn: Turn, hide: Hide): McpTask {
  return { turn, status: statusOf(turn), answer: isEnded(turn) ? answerOfTurn(turn, hide) : undefined };
}

function statusOf({ status }: Turn): McpTaskStatus {
  return status === "queued" || status === "running" ? "working" : status;
}
