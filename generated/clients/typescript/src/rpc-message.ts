// Copied by "npm run generate" from scripts/generate/runtime/typescript/rpc-message.ts; do not edit.
import { isObject } from "./body.ts";
import { GatewayError, type RpcErrorObject, rpcError } from "./error.ts";

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

export function isResponse(value: unknown): value is RpcResponse {
  return isObject(value) && "id" in value && ("result" in value || isObject(value.error));
}

/** The response to one request. Throws the error by which the message as a whole was refused. */
export function responseTo(
  id: string,
  responses: readonly RpcResponse[],
  operation: string,
  status?: number,
): RpcResponse {
  const response = responses.find((candidate) => candidate.id === id);
  if (response !== undefined) return response;
  const refusal = responses.find((candidate) => candidate.id === null)?.error;
  if (refusal !== undefined) throw rpcError(refusal, operation, status);
  const detail = `No response has the id ${id}. Is this a gateway?`;
  throw new GatewayError("not-a-gateway", "Not a gateway's answer", { operation, status, detail });
}
