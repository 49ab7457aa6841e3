// Copied by "npm run generate" from scripts/generate/runtime/typescript/index.ts; do not edit.
import { RestClient } from "./rest.ts";
import { RpcClient } from "./rpc.ts";
import type { GatewayOptions } from "./settings.ts";

export type { Push, Pushes, PushName, Subscribe, Unsubscribe } from "./push-types.ts";
export * from "./rest.ts";
export * as webhooks from "./webhooks.ts";

/** One client for all surfaces of a gateway. */
export class Gateway extends RestClient {
  /** The RPC methods. */
  readonly rpc: RpcClient;

  constructor(options: GatewayOptions = {}) {
    super(options);
    this.rpc = new RpcClient(options);
  }
}

/** @deprecated Use `Gateway`. */
export const AgentGateway = Gateway;
/** @deprecated Use `Gateway`. */
export type AgentGateway = Gateway;
