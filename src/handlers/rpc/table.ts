import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { statusOf } from "#core/health.ts";
import { listedFor, partsFor } from "#core/reach.ts";
import type { Reloads } from "#core/reload.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { Info } from "#generated/rpc-types.ts";
import { requireAllAgents } from "#kit/reach.ts";
import { agent } from "./agent.ts";
import { schedule } from "./schedule.ts";
import { session } from "./session.ts";

/** The parts that the RPC handlers use: the core, and the gateway around it. */
type RpcParts = {
  core: Core;
  reloads: Reloads;
  /** The identity and the capabilities of this gateway, with the turns of these agents or of all. */
  info: (agents: readonly string[] | undefined) => Info;
  version: string;
  uptimeMs: () => number;
};

/** The body of every RPC method. One that is missing does not compile. */
export function rpcHandlers({ core, reloads, info, version, uptimeMs }: RpcParts): RpcHandlers<CallContext> {
  return {
    ...agent(core, reloads),
    ...session(core),
    ...schedule(core),
    "system.health": async (_, { caller }) => {
      const { parts: all, store, nodeId } = await core.health.read();
      const parts = partsFor(caller, all);
      return { status: statusOf(parts), parts, store, nodeId, uptimeMs: Math.round(uptimeMs()), version };
    },
    "system.info": (_, { caller }) => info(caller.agents),
    "system.reload": (_, { caller }) => {
      requireAllAgents(caller, "system.reload");
      return reloads.system("rpc");
    },
    "budget.list": async (_, { caller }) => ({ budgets: await core.budgets.list(caller) }),
    "usage.stats": ({ agentName, ...query }, { caller }) => core.usageStats(query, listedFor(caller, agentName)),
  };
}
