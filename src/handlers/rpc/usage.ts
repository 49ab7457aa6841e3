import type { CallContext } from "#core/call.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcParts } from "./parts.ts";

export const usage = ({ core }: RpcParts): Pick<RpcHandlers<CallContext>, "usage.stats"> => ({
  "usage.stats": (params) => core.usageStats(params),
});
