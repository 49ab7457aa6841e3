import { RestClient } from "#generated/clients/typescript/src/rest.ts";
import { RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import type { GatewayOptions } from "./settings.ts";

export type { Push, Pushes, PushName, Subscribe, Unsubscribe } from "#generated/clients/typescript/src/push-types.ts";
export * from "#generated/clients/typescript/src/rest.ts";
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
