import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import type { Wording } from "#wire/call/problem.ts";
import { errorOf } from "#wire/rpc/envelope.ts";

/** An error of JSON-RPC. */
export type McpError = { code: number; message: string; data: object };

/** The codes of errors that RPC does not have, by status. They are those of its similar errors. */
const CODES: Readonly<Record<number, number>> = { 401: -32000, 403: -32001, 404: -32002, 409: -32003, 504: -32005 };

/** An error as RPC has it, with its status. The message also has the detail, because programs show their users only the message. */
export function mcpErrorOf(error: GatewayError, requestId: string): McpError {
  const { code: ofRpc, status } = errors[error.name];
  const { code, message, data } = errorOf(error, requestId);
  return {
    code: ofRpc ?? CODES[status] ?? code,
    message: "detail" in data ? `${message}: ${data.detail}` : `${message}.`,
    data: { ...data, status },
  };
}

/** A refusal as the answer to the message with this id. */
export function asMcpError(id: string | number | null): Wording {
  return (error, requestId) => ({
    type: "application/json",
    body: JSON.stringify({ jsonrpc: "2.0", error: mcpErrorOf(error, requestId), id }),
  });
}
