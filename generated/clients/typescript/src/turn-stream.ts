// Copied by "npm run generate" from scripts/generate/runtime/typescript/turn-stream.ts; do not edit.
import type { TurnEvent } from "./rest-types.ts";
import { pause } from "./attempts.ts";
import { isObject, stringOr } from "./body.ts";
import { GatewayError, isWorthRetrying, otherAnswer } from "./error.ts";
import { readEvents, type ServerEvent } from "./sse.ts";

/** Opens the stream, after an event of a turn or from its start. */
type Open = (from: { turnId: string; after: string } | undefined) => Promise<Response>;

/** The maximum number of attempts to reopen a lost stream without a new event in between. */
const ATTEMPTS = 5;
const LAST_EVENTS: readonly TurnEvent["event"][] = ["turn.completed", "turn.failed", "turn.cancelled"];

/**
 * The events of a turn until its end. The call is made when the reading starts. A lost stream continues after its last event. A reader that stops
 * ends the stream, not the turn.
 */
export class TurnStream implements AsyncIterable<TurnEvent> {
  readonly #open: Open;
  readonly #failure: (cause: unknown) => GatewayError;
  readonly #signal: AbortSignal | undefined;

  constructor(open: Open, failure: (cause: unknown) => GatewayError, signal: AbortSignal | undefined) {
    this.#open = open;
    this.#failure = failure;
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TurnEvent, void, undefined> {
    let from: { turnId: string; after: string } | undefined;
    for (let failed = 0; ; failed += 1) {
      let error: unknown;
      try {
        for await (const event of readEvents(await this.#open(from))) {
          const turnEvent = eventOf(event);
          // A server that repeats an event makes no progress.
          if (event.id !== from?.after) failed = 0;
          from = { turnId: turnEvent.data.turn_id, after: event.id };
          yield turnEvent;
          if (LAST_EVENTS.includes(turnEvent.event)) return;
        }
      } catch (cause) {
        if (this.#signal?.aborted) throw this.#signal.reason;
        error = this.#failure(cause);
      }
      if (isRefusal(error) || from === undefined) throw error ?? lost(error);
      if (failed >= ATTEMPTS) throw lost(error);
      await pause(Math.min(5_000, 200 * 2 ** failed), this.#signal);
    }
  }

  /**
   * The reply, piece by piece. If a turn runs again, for example after a crash of the gateway, the reply continues where the new text is longer than
   * the old one; a different reply is yielded from its start. Throws a GatewayError if the turn ends without a reply.
   */
  async *text(): AsyncGenerator<string, void, undefined> {
    let given = "";
    let reply = "";
    for await (const { event, data } of this) {
      if (event === "turn.started") reply = "";
      if (event === "message.delta" || event === "message.completed") {
        // The reply of an ended turn has no pieces.
        reply = event === "message.delta" ? reply.slice(0, data.offset) + data.text : data.text;
        const isBehind = given.startsWith(reply);
        const piece = reply.startsWith(given) ? reply.slice(given.length) : reply;
        if (!isBehind) given = reply;
        if (!isBehind && piece !== "") yield piece;
      }
      if (event === "turn.failed") {
        const { name, title, detail }: Record<string, unknown> = { ...data.error };
        throw new GatewayError(data.error.name, stringOr(title, String(name)), {
          detail: stringOr(detail, undefined),
          turnId: data.turn_id,
        });
      }
      if (event === "turn.cancelled") {
        const detail = "The turn was cancelled.";
        throw new GatewayError("turn-cancelled", "Turn cancelled", { detail, turnId: data.turn_id });
      }
    }
  }
}

/** An event of a turn, with the fields that this client reads. Throws for any other event. */
function eventOf({ event, id, data }: ServerEvent): TurnEvent {
  const fields = parsed(data);
  // A lost stream is resumed with the id, in a header.
  if (!isObject(fields) || !/^[\x20-\x7e]{0,1000}$/.test(id) || !isOfTurn(event, fields))
    throw otherAnswer(undefined, `An event is not a turn event: ${data.slice(0, 100)}.`);
  return { event, id, data: fields } as unknown as TurnEvent;
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw otherAnswer(undefined, "An event is not JSON.");
  }
}

function isOfTurn(event: string, { turn_id, text, offset, error }: Record<string, unknown>): boolean {
  if (typeof turn_id !== "string" || ["", ".", ".."].includes(turn_id)) return false;
  if (event === "message.delta") return typeof text === "string" && Number.isSafeInteger(offset) && Number(offset) >= 0;
  if (event === "message.completed") return typeof text === "string";
  return event !== "turn.failed" || (isObject(error) && typeof error.name === "string");
}

/** The gateway has answered, and would give the same answer again. */
function isRefusal(error: unknown): boolean {
  return error instanceof GatewayError && !isWorthRetrying(error, true);
}

function lost(cause: unknown): GatewayError {
  return new GatewayError("connection-failed", "Connection failed", {
    detail: "The stream was lost several times in a row.",
    cause,
  });
}
