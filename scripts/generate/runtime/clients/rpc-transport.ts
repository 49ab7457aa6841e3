import type { RpcErrorObject } from "./rpc-error.ts";

export interface RpcRequest {
  jsonrpc: "2.0";
  method: string;
  params: object;
  /** Absent in a notification, which is not answered. */
  id?: string;
}

export interface RpcResponse {
  id: string | number | null;
  result?: unknown;
  error?: RpcErrorObject;
}

/** A way to the gateway. */
export interface RpcTransport {
  /**
   * Sends one request, or a batch as one message, and gives the responses in any order: one for each request that has
   * an id, or a single one with a null id where the message as a whole was refused.
   */
  send(message: RpcRequest | RpcRequest[], signal?: AbortSignal): Promise<RpcResponse[]>;
}

export const isResponse = (value: unknown): value is RpcResponse =>
  typeof value === "object" && value !== null && "id" in value && ("result" in value || "error" in value);
