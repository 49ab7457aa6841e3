import { type CallToolResult, ProtocolError } from "@modelcontextprotocol/server";
import type { McpAnswer } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import { mcpErrorOf } from "./mcp-errors.ts";
import type { McpRequest } from "./mcp-request.ts";

/** An answer as the protocol has it. The text of a reply is written by another program, and is marked as such. */
export function resultOf({ text, note, structured, isError }: McpAnswer, isReply: boolean): CallToolResult {
  return {
    content: [text, note].filter((one) => one !== undefined).map((one) => ({ type: "text", text: one })),
    ...(structured && { structuredContent: structured as Record<string, unknown> }),
    ...(isError === true && { isError }),
    ...(isReply && { _meta: { "agent-gateway/untrusted": true } }),
  };
}

/** Writes an error to the access line, and an unexpected one to the log. */
export function reported({ call }: McpRequest, thrown: unknown): GatewayError {
  const error = GatewayError.from(thrown);
  call.line.failed(error);
  if (error.name === "internal")
    call.parts.events.unexpectedError({ error: error.cause ?? error, requestId: call.requestId });
  return error;
}

export function protocolError(request: McpRequest, error: GatewayError): ProtocolError {
  const { code, message, data } = hidden(request, mcpErrorOf(error, request.call.requestId));
  return new ProtocolError(code, message, data);
}

/** A value without the secrets of the configuration. */
export function hidden<T>({ call }: McpRequest, value: T): T {
  return JSON.parse(call.parts.hideInJson(JSON.stringify(value)));
}
