import type { CallContext } from "#core/call.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import { agent } from "./agent.ts";
import type { RpcParts } from "./parts.ts";
import { session } from "./session.ts";
import { system } from "./system.ts";
import { usage } from "./usage.ts";

/** The body of every RPC method. One that is missing does not compile. */
export const rpcHandlers = (parts: RpcParts) =>
  ({ ...agent(parts), ...session(parts), ...system(parts), ...usage(parts) }) satisfies RpcHandlers<CallContext>;
