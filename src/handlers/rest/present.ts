import type { TurnStep } from "#core/turns/turn-events.ts";
import { errors } from "#generated/errors.ts";
import type { RestReplies, TurnEvent } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { showCompleted, showUsage } from "#kit/usages.ts";
import type { Page, Turn } from "#store/store.ts";

/** How REST writes the values of the core: snake_case, times as text, null for a missing value. */
export const timeOf = (ms: number): string => new Date(ms).toISOString();
export const timeOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : timeOf(ms));

export const turnOf = (turn: Turn): RestReplies["turns.get"] => ({ ...turnSummaryOf(turn), reply: turn.reply ?? null });

/** A turn as a list shows it. */
export const turnSummaryOf = (turn: Turn): RestReplies["turns.list"]["turns"][number] => ({
  turn_id: turn.turnId,
  session_id: turn.sessionId,
  agent: turn.agent,
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
});

const errorOf = ({ name, detail }: NonNullable<Turn["error"]>) => ({
  name,
  title: errors[name].title,
  ...(detail !== undefined && { detail }),
});

/** A step as an event of the stream; undefined for one that REST does not tell. */
export const eventOf = (turn: Pick<Turn, "turnId" | "sessionId">, step: TurnStep): TurnEvent | undefined => {
  if (step.kind === "delta") {
    const { messageId: message_id, seq, offset, text } = step;
    const data = { turn_id: turn.turnId, message_id, seq, offset, text };
    return { event: "message.delta", id: `${step.mark.seq}.${step.mark.offset}`, data };
  }
  const { entry } = step;
  const { seq } = entry;
  const id = String(seq);
  const ids = { turn_id: turn.turnId, session_id: turn.sessionId };
  switch (entry.name) {
    case "turn.started":
      return { event: "turn.started", id, data: { ...ids, seq, attempt: entry.attempt } };
    case "message.completed":
      return {
        event: "message.completed",
        id,
        data: { turn_id: turn.turnId, message_id: entry.messageId, seq, text: entry.text },
      };
    case "turn.completed": {
      const { reply, usage } = entry;
      return {
        event: "turn.completed",
        id,
        data: { ...ids, seq, status: "completed", reply, usage: showCompleted(usage) },
      };
    }
    case "turn.failed": {
      const { error, usage } = entry;
      const data = { ...ids, seq, status: "failed", error: errorOf(error), usage: showUsage(usage) } as const;
      return { event: "turn.failed", id, data };
    }
    case "turn.cancelled": {
      const data = { ...ids, seq, status: "cancelled", usage: showUsage(entry.usage) } as const;
      return { event: "turn.cancelled", id, data: entry.reply === "" ? data : { ...data, reply: entry.reply } };
    }
    default:
      return undefined;
  }
};

/** The place after the event of this id; undefined for one that no stream sent. */
export const markOf = (eventId: string | undefined): { seq: number; offset: number } | undefined => {
  const parts = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(eventId ?? "");
  return parts ? { seq: Number(parts[1]), offset: Number(parts[2] ?? 0) } : undefined;
};

/** A page of the store's; a cursor that it does not know is the request's fault. */
export const pageOf = async <T>(reading: Promise<Page<T>>): Promise<Page<T>> => {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof GatewayError && error.name === "invalid-params" ? unknownCursor() : error;
  }
};

export const unknownCursor = (): GatewayError => {
  const errors = [{ pointer: "query:cursor", message: "is not one that a list gave; begin again without it" }];
  return new GatewayError("invalid-request", "The cursor is unknown.", { errors });
};
