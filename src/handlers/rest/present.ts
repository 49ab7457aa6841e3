import { showAnnouncement } from "#core/recorder/deliveries.ts";
import type { TurnStep } from "#core/turns/turn-events.ts";
import { errors } from "#generated/errors.ts";
import type { RestReplies, TurnEvent } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { showPreview } from "#kit/previews.ts";
import { showToolCalls } from "#kit/tool-calls.ts";
import { showCompleted, showUsage } from "#kit/usages.ts";
import type { KeyLimits, Page, Turn } from "#store/store.ts";

/** REST writes the values of the core in snake_case, times as text, and null for a missing value. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
export function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : timeOf(ms);
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** The record with REST's names: `turnId` is `turn_id`. */
export function snakeCased<T extends object>(record: T) {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  ) as { [Name in keyof T & string as SnakeCase<Name>]: T[Name] };
}

/**
 * A time in a request. The contract checks its form. `Date` converts the 31st of February to the 3rd of March, so a text that differs from
 * the result is not a valid date and time.
 */
export function momentOf(pointer: string, text: string | null | undefined): number | undefined {
  if (!text) return undefined;
  const at = new Date(text);
  if (!Number.isNaN(at.getTime()) && at.toISOString() === text) return at.getTime();
  const message = "is not a valid date and time";
  throw new GatewayError("invalid-request", `${pointer.split(/[:/]/).at(-1)} ${message}.`, {
    errors: [{ pointer, message }],
  });
}

/** The limits of a key or token. Null: all agents, the rate limit of its surface, no budget of its own. */
export function limitsOf({ agents, rateLimit, budget }: KeyLimits) {
  return {
    agents: agents ? [...agents] : null,
    rate_limit: rateLimit ? { limit: rateLimit.maxRequests, window_ms: rateLimit.windowMs } : null,
    budget: budget ? snakeCased(budget) : null,
  };
}

type Hide = (text: string) => string;

export function turnOf(turn: Turn, hide: Hide): RestReplies["turns.get"] {
  return { ...turnSummaryOf(turn, hide), reply: turn.reply ?? null };
}

/** A turn in a list. */
export function turnSummaryOf(turn: Turn, hide: Hide): RestReplies["turns.list"]["turns"][number] {
  return {
    turn_id: turn.turnId,
    session_id: turn.sessionId,
    agent: turn.agent,
    surface: turn.surface,
    caller: turn.caller,
    status: turn.status,
    attempt: turn.attempt,
    created_at: timeOf(turn.createdAt),
    started_at: timeOrNull(turn.startedAt),
    ended_at: timeOrNull(turn.endedAt),
    model: turn.model ?? null,
    error: turn.error ? errorOf(turn.error) : null,
    usage:
      turn.endedAt !== undefined && turn.usage
        ? (turn.status === "completed" ? showCompleted : showUsage)(turn.usage)
        : null,
    delivery_id: turn.deliveryId ?? null,
    preview: showPreview(turn.preview, hide),
    reply_preview: showPreview(turn.replyPreview, hide),
    announcement: showAnnouncement(turn.announcement),
  };
}

function errorOf({ name, detail }: NonNullable<Turn["error"]>) {
  return {
    name,
    title: errors[name].title,
    ...(detail !== undefined && { detail }),
  };
}

/** The event for a step in a REST stream, if there is one. */
export function eventsOf(turn: Pick<Turn, "turnId" | "sessionId">, step: TurnStep): TurnEvent[] {
  const turn_id = turn.turnId;
  const id = step.kind === "delta" ? `${step.mark.seq}.${step.mark.offset}` : String(step.mark.seq);
  if (step.kind === "delta") {
    const { messageId: message_id, seq, offset, text } = step;
    return [{ event: "message.delta", id, data: { turn_id, message_id, seq, offset, text } }];
  }
  const { entry } = step;
  const { seq } = entry;
  const ids = { turn_id, session_id: turn.sessionId, seq };
  switch (entry.name) {
    case "turn.started":
      return [{ event: "turn.started", id, data: Object.assign(ids, { attempt: entry.attempt }) }];
    case "message.completed": {
      const { messageId: message_id, text, toolCalls: tool_calls } = entry;
      return [
        {
          event: "message.completed",
          id,
          data: { turn_id, message_id, seq, text, ...(tool_calls && { tool_calls: showToolCalls(tool_calls) }) },
        },
      ];
    }
    case "turn.completed": {
      const { reply, usage } = entry;
      const data = Object.assign(ids, { status: "completed", reply, usage: showCompleted(usage) } as const);
      return [{ event: "turn.completed", id, data }];
    }
    case "turn.failed": {
      const error = errorOf(entry.error);
      const data = Object.assign(ids, { status: "failed", error, usage: showUsage(entry.usage) } as const);
      return [{ event: "turn.failed", id, data }];
    }
    case "turn.cancelled": {
      const data = Object.assign(ids, { status: "cancelled", usage: showUsage(entry.usage) } as const);
      return [{ event: "turn.cancelled", id, data: entry.reply === "" ? data : { ...data, reply: entry.reply } }];
    }
    default:
      return [];
  }
}

/** The place after the event with this id. Undefined for an id that no stream sends. */
export function markOf(eventId: string | undefined): { seq: number; offset: number } | undefined {
  const parts = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(eventId ?? "");
  return parts ? { seq: Number(parts[1]), offset: Number(parts[2] ?? 0) } : undefined;
}

/** A page of the store. An unknown cursor is an error of the request. */
export async function pageOf<T>(reading: Promise<Page<T>>): Promise<Page<T>> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof GatewayError && error.name === "invalid-params" ? unknownCursor() : error;
  }
}

export function unknownCursor(): GatewayError {
  const errors = [{ pointer: "query:cursor", message: "is not a cursor of this list; start again without it" }];
  return new GatewayError("invalid-request", "The cursor is not valid.", { errors });
}
