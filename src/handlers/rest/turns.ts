import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { StepMark } from "#core/turns/turn-events.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import type { Turn } from "#store/store.ts";
import { turnEvents } from "./chat.ts";
import { markOf, pageOf, turnOf, turnSummaryOf } from "./present.ts";

type Bodies = Pick<RestHandlers<CallContext>, "turns.list" | "turns.get" | "turns.events" | "turns.cancel">;

export function turns(core: Core): Bodies {
  return {
    "turns.list": async ({ query: { session_id: sessionId, ...rest } }) => {
      const { items, next } = await pageOf(core.store.listTurns({ ...rest, sessionId }));
      return { turns: items.map(turnSummaryOf), next_cursor: next ?? null };
    },
    "turns.get": async ({ path }) => turnOf(await core.turns.get(path.turn_id)),
    "turns.events": async ({ path, headers }) => {
      const turn = await core.turns.get(path.turn_id);
      const from = await placeIn(core, turn, markOf(headers["last-event-id"]));
      return { as: "events", body: turnEvents(core, turn, from) };
    },
    "turns.cancel": async ({ path }) => turnOf(await core.turns.cancel(path.turn_id)),
  };
}

/** The place to go on from; undefined, the start, for one that this turn's stream never gave. */
async function placeIn({ store }: Core, turn: Turn, mark: StepMark | undefined): Promise<StepMark | undefined> {
  if (!mark) return undefined;
  const [entry] = await store.readEntries(turn.sessionId, { after: mark.seq - 1, limit: 1 });
  return entry?.turnId === turn.turnId ? mark : undefined;
}
