import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { agentFor, requireOwnForm } from "#core/reach.ts";
import { placeOfChat } from "#core/sessions/sessions.ts";
import type { StepMark, TurnSteps } from "#core/turns/turn-events.ts";
import { failureOf, isEnded, type Started, type TurnRequest } from "#core/turns/turns.ts";
import type { RestHandlers, RestReplies, TurnEvent } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { NO_USAGE, showCompleted } from "#kit/usages.ts";
import type { Turn } from "#store/store.ts";
import { eventsOf } from "./present.ts";

export function chat(core: Core): Pick<RestHandlers<CallContext>, "chat.send"> {
  return {
    "chat.send": async ({ body }, ctx) => {
      const place = await placeFor(core, body, ctx);
      const { message: text, model, stream, wait, skill_ids: skillIds } = body;
      return startAndAnswer(core, { place, text, model, skillIds, stream, wait }, ctx);
    },
  };
}

type Named = { agent?: string; session_id?: string; user_id?: string; model?: string };

/** The agent and session of a request: from its fields, or from the defaults of its caller. */
export function placeFor({ agents, checkNames, clock, store }: Core, named: Named, { caller }: CallContext) {
  const { session_id, user_id, model } = named;
  const agent = agentFor(agents, caller, named.agent).name;
  checkNames("invalid-request", { session_id, user_id, model });
  const place = placeOfChat({ agent, sessionId: session_id, userId: user_id }, caller.name, clock.now());
  const checked = requireOwnForm(store, caller, session_id);
  return checked ? checked.then(() => place) : place;
}

type Work = Pick<TurnRequest, "place" | "text" | "context" | "model" | "skillIds"> & { stream: boolean; wait: boolean };

/** Starts a turn for its caller. Without `stream` and with `wait` it resolves when the turn has ended, or after the time that a call waits. */
export function startTurn(core: Core, work: Work, ctx: CallContext): Promise<Started> {
  const { place, text, context, model, skillIds, stream, wait } = work;
  // The fields are written out: a literal that begins with a spread would give every call hidden classes of its own.
  return core.turns.start({
    place,
    text,
    context,
    model,
    skillIds,
    surface: "rest",
    caller: ctx.caller.name,
    hops: ctx.hops,
    agents: ctx.caller.agents,
    idempotency: ctx.idempotency,
    delivery: ctx.delivery(),
    waitMs: stream || !wait ? undefined : core.replyWaitMs,
    streamed: stream,
    callerSignal: () => ctx.signal,
  });
}

/** Starts a turn and answers with the whole reply, its events, or where to find it later. */
export async function startAndAnswer(core: Core, work: Work, ctx: CallContext): Promise<RestReplies["chat.send"]> {
  const { stream, wait } = work;
  if (stream && !wait)
    throw new GatewayError("invalid-request", "`stream: true` and `wait: false` exclude each other. Send one of them.");
  const started = await startTurn(core, work, ctx);
  const { turn, replayed } = started;
  return stream ? { as: "events", body: turnEvents(core, turn, undefined), replayed } : answerOf(started);
}

function answerOf({ turn, replayed }: Started): RestReplies["chat.send"] {
  const { messageId: message_id, sessionId: session_id, turnId: turn_id } = turn;
  if (!isEnded(turn)) {
    const status = turn.status === "queued" ? "queued" : "running";
    return { as: "accepted", body: { message_id, session_id, turn_id, status }, replayed };
  }
  if (turn.status !== "completed") throw failureOf(turn, replayed);
  const usage = showCompleted(turn.usage ?? NO_USAGE);
  const reply = turn.reply ?? "";
  return {
    as: "completed",
    body: { message_id, session_id, turn_id, status: "completed", reply, usage },
    replayed,
  };
}

export function turnEvents({ followTurn }: Core, turn: Turn, from: StepMark | undefined): TurnSteps<TurnEvent> {
  const ids = { turnId: turn.turnId, sessionId: turn.sessionId };
  return followTurn(turn, from, (step) => eventsOf(ids, step));
}
