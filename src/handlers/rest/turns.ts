import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { turnEvents } from "./answer.ts";
import { markOf, turnOf } from "./present.ts";

export const turns = (core: Core): Pick<RestHandlers<CallContext>, "turns.get" | "turns.events" | "turns.cancel"> => ({
  "turns.get": async ({ path }) => turnOf(await core.turns.get(path.turn_id)),
  "turns.events": async ({ path, headers }, { signal }) => {
    const turn = await core.turns.get(path.turn_id);
    return { as: "events", body: turnEvents(core, turn, markOf(headers["last-event-id"]), signal) };
  },
  "turns.cancel": async ({ path }) => turnOf(await core.turns.cancel(path.turn_id)),
});
