import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { contextForSession } from "#core/sessions/earlier-messages.ts";
import { placeOfChat } from "#core/sessions/sessions.ts";
import { followOnceBegun } from "#core/turns/first-step.ts";
import { failureOf, isEnded, type Started } from "#core/turns/turns.ts";
import type { OpenAiHandlers } from "#generated/openai-handlers.ts";
import type { ChatCompletion } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { startTurn } from "../rest/chat.ts";
import { findAgent } from "./agent-models.ts";
import { readConversation } from "./conversation.ts";
import { completionOf, createChunks } from "./present.ts";

const CHANNEL = "openai";

export function completions(core: Core): Pick<OpenAiHandlers<CallContext>, "completions.create"> {
  return {
    "completions.create": async ({ body }, ctx) => {
      const { agent, model } = findAgent(core, ctx.caller, body.model);
      core.checkNames("invalid-request", { user: body.user, model });
      const { text, earlier } = readConversation(body.messages);
      const { user, stream = false } = body;
      const request = { agent: agent.name, userId: user ?? undefined, channel: CHANNEL };
      const place = placeOfChat(request, ctx.caller.name, core.clock.now());
      const context = await contextForSession(core.store, user == null ? undefined : place.sessionId, earlier);
      const started = await startTurn(core, { place, text, context, model, stream: stream === true, wait: true }, ctx);
      const { turn, replayed } = started;
      if (!stream) return { as: "completed", body: completedOf(started, body.model), replayed };
      const chunks = createChunks(turn, body.model, body.stream_options?.include_usage === true);
      return { as: "events", body: await followOnceBegun(core, turn, chunks, ctx.signal), replayed };
    },
  };
}

function completedOf({ turn, replayed }: Started, model: string): ChatCompletion {
  const { turnId } = turn;
  if (!isEnded(turn)) {
    const where = `The turn ${turnId} is still running; GET /api/v1/turns/${turnId} has its reply.`;
    throw new GatewayError("turn-running", where, { turnId, replayed });
  }
  if (turn.status !== "completed") throw failureOf(turn, replayed);
  return completionOf(turn, model);
}
