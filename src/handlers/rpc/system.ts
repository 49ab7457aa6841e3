import type { CallContext } from "#core/call.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcParts } from "./parts.ts";

type SystemMethods = "system.health" | "system.info" | "system.reload";

export const system = (parts: RpcParts): Pick<RpcHandlers<CallContext>, SystemMethods> => ({
  "system.health": async () => {
    const { status, parts: all, store, nodeId } = await parts.core.health.read();
    return { status, parts: [...all], store, nodeId, uptimeMs: Math.round(parts.uptimeMs()), version: parts.version };
  },
  "system.info": () => parts.info(),
  "system.reload": () => parts.reloads.system(),
});
