import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { Reloads } from "#core/reload.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { Info } from "#generated/rpc-types.ts";
import { agent } from "./agent.ts";
import { session } from "./session.ts";

/** The parts that the RPC handlers use: the core, and the gateway around it. */
type RpcParts = {
  core: Core;
  reloads: Reloads;
  /** The identity and the capabilities of this gateway. */
  info: () => Info;
  version: string;
  uptimeMs: () => number;
};

/** The body of every RPC method. One that is missing does not compile. */
export function rpcHandlers({ core, reloads, info, version, uptimeMs }: RpcParts): RpcHandlers<CallContext> {
  return {
    ...agent(core, reloads),
    ...session(core),
    "system.health": async () => {
      const { status, parts, store, nodeId } = await core.health.read();
      return { status, parts: [...parts], store, nodeId, uptimeMs: Math.round(uptimeMs()), version };
    },
    "system.info": () => info(),
    "system.reload": () => reloads.system(),
    "usage.stats": (params) => core.usageStats(params),
  };
}
