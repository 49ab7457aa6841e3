import { agentView } from "#core/agents/agents.ts";
import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { agentFor, agentsFor, requireOwnForm } from "#core/reach.ts";
import type { Reloads } from "#core/reload.ts";
import { placeOf } from "#core/sessions/sessions.ts";
import { failureOf, isEnded, type Started, type TurnRequest } from "#core/turns/turns.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcMethods, SentMessage } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { requireAllAgents, requireReach } from "#kit/reach.ts";
import { NO_USAGE, showCompleted } from "#kit/usages.ts";

type AgentMethods = "agent.list" | "agent.status" | "agent.reload" | "agent.sendMessage";

export function agent(core: Core, reloads: Reloads): Pick<RpcHandlers<CallContext>, AgentMethods> {
  return {
    "agent.list": (_, { caller }) => ({
      agents: agentsFor(core.agents, caller).map(({ name }) => agentView(core, name)),
    }),
    "agent.status": ({ agentName }, { caller }) => agentView(core, agentFor(core.agents, caller, agentName).name),
    "agent.reload": ({ agentName }, { caller }) => {
      // It reads the configuration and the skills of all agents, and reports their faults.
      requireAllAgents(caller, "agent.reload");
      return reloads.agent(agentName);
    },
    "agent.sendMessage": (params, ctx) => {
      const { agentName, sessionId, userId, model, channel, stream, wait } = params;
      requireReach(ctx.caller, agentName);
      if (stream && !ctx.follow) throw new GatewayError("invalid-params", "`stream` works only over a WebSocket.");
      core.checkNames("invalid-params", { sessionId, userId, model, channel });
      const checked = requireOwnForm(core.store, ctx.caller, sessionId);
      const start = () => core.turns.start(requestOf(core, params, ctx)).then((started) => sentOf(started, wait));
      return checked ? checked.then(start) : start();
    },
  };
}

function requestOf(core: Core, params: RpcMethods["agent.sendMessage"]["params"], ctx: CallContext): TurnRequest {
  const { agentName, channel, userId, sessionId, message, model, wait, stream, hops } = params;
  const { follow, caller } = ctx;
  return {
    place: placeOf({ agent: agentName, sessionId, channel, userId }, "rpc", caller.name),
    surface: "rpc",
    caller: caller.name,
    hops: hops === undefined ? ctx.hops : Math.max(hops, ctx.hops),
    agents: caller.agents,
    idempotency: ctx.idempotency,
    delivery: ctx.delivery(),
    text: message,
    model,
    waitMs: wait ? core.replyWaitMs : undefined,
    streamed: stream,
    follow: follow && ((turn, replySeq) => follow(turn, { stream, replySeq })),
    callerSignal: wait ? () => ctx.signal : undefined,
  };
}

/** The sent message, with the reply for a caller that waits. Throws the error of a turn that did not complete. */
function sentOf({ turn, replayed }: Started, wait: boolean): SentMessage {
  const { messageId, sessionId, turnId } = turn;
  const sent: SentMessage = { messageId, status: "delivered", sessionId, turnId };
  if (wait && isEnded(turn)) {
    if (turn.status !== "completed") throw failureOf(turn, replayed);
    sent.reply = turn.reply ?? "";
    sent.usage = showCompleted(turn.usage ?? NO_USAGE);
  }
  if (replayed) sent.replayed = true;
  return sent;
}
