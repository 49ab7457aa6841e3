import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { SystemEvent } from "#store/store.ts";
import { pageOf, timeOf, timeOrNull } from "./present.ts";

type Bodies = Pick<RestHandlers<CallContext>, "events.list" | "events.get" | "events.replay">;

export function events({ store, systemEvents }: Core): Bodies {
  return {
    "events.list": async ({ query }) => {
      const { items, next } = await pageOf(store.listEvents(query));
      return { events: items.map(eventOf), next_cursor: next ?? null };
    },
    "events.get": async ({ path }) => eventOf(await systemEvents.get(path.event_id)),
    "events.replay": async ({ path }, { caller }) => eventOf(await systemEvents.replay(path.event_id, caller.name)),
  };
}

function eventOf(event: SystemEvent): RestReplies["events.get"] {
  return {
    event_id: event.eventId,
    agent: event.agent,
    text: event.text,
    metadata: event.metadata === undefined ? null : (JSON.parse(event.metadata) as Record<string, unknown>),
    caller: event.caller,
    status: event.status,
    attempts: event.attempts,
    created_at: timeOf(event.createdAt),
    ended_at: timeOrNull(event.endedAt),
    turn_id: event.turnId ?? null,
    reason: event.reason ?? null,
    delivery_id: event.deliveryId ?? null,
  };
}
