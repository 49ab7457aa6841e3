import type { CallContext, Caller } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { turnFor } from "#core/reach.ts";
import { findMark } from "#core/turns/turn-events.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { turnEvents } from "./chat.ts";
import { markOf, pageOf, turnOf, turnSummaryOf } from "./present.ts";

type Bodies = Pick<
  RestHandlers<CallContext>,
  "turns.list" | "turns.get" | "turns.events" | "turns.cancel" | "turns.announce"
>;

export function turns(core: Core): Bodies {
  return {
    "turns.list": async ({ query: { session_id: sessionId, ...rest } }) => {
      const { items, next } = await pageOf(core.store.listTurns({ ...rest, sessionId }));
      return { turns: items.map((turn) => turnSummaryOf(turn, core.hide)), next_cursor: next ?? null };
    },
    "turns.get": async ({ path }, { caller }) =>
      shownTo(caller, turnOf(await turnFor(core.turns, caller, path.turn_id), core.hide)),
    "turns.events": async ({ path, headers }, { caller }) => {
      const turn = await turnFor(core.turns, caller, path.turn_id);
      const from = await findMark(core.store, turn, markOf(headers["last-event-id"]));
      return { as: "events", body: turnEvents(core, turn, from) };
    },
    "turns.cancel": async ({ path }, { caller }) => {
      if (caller.agents) await turnFor(core.turns, caller, path.turn_id);
      return shownTo(caller, turnOf(await core.turns.cancel(path.turn_id), core.hide));
    },
    "turns.announce": async ({ path }, { caller, hops }) =>
      turnOf(await core.outbox.announceAgain(path.turn_id, caller.name, hops), core.hide),
  };
}

type ShownTurn = RestReplies["turns.get"];

/** A key with only the scope `chat` may read any turn, but not who started it, its message, or the failure of its announcement. */
function shownTo(caller: Caller, turn: ShownTurn): ShownTurn {
  if (caller.surface === "rest" && caller.scopes.some((scope) => scope !== "chat")) return turn;
  const { announcement } = turn;
  return { ...turn, caller: null, preview: null, announcement: announcement && { ...announcement, reason: null } };
}
