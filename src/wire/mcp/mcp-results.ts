import { type CallToolResult, ProtocolError } from "@modelcontextprotocol/server";
import type { McpAnswer } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import { type McpError, mcpErrorOf } from "./mcp-errors.ts";
import type { McpRequest } from "./mcp-request.ts";

/** An answer as the protocol has it. An answer that can have text of senders or agents is marked, but not an error of the gateway itself. */
export function resultOf({ text, note, structured, isError }: McpAnswer, isTrusted: boolean): CallToolResult {
  return {
    content: [text, note].filter((one) => one !== undefined).map((one) => ({ type: "text", text: one })),
    ...(structured && { structuredContent: structured as Record<string, unknown> }),
    ...(isError === true && { isError }),
    ...(!isTrusted && (structured || !isError) && { _meta: { "agent-gateway/untrusted": true } }),
  };
}

/** Runs `run` and turns its errors into errors of the protocol. An unexpected error is logged, and its cause is not sent to the client. */
export async function guarded<T>(request: McpRequest, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    throw protocolError(request, reportError(request, thrown));
  }
}

/** Writes an error to the access line, and an unexpected one to the log. */
function reportError({ call }: McpRequest, thrown: unknown): GatewayError {
  const error = GatewayError.from(thrown);
  call.line.failed(error);
  if (error.name === "internal")
    call.parts.events.unexpectedError({ error: error.cause ?? error, requestId: call.requestId });
  return error;
}

function protocolError(request: McpRequest, error: GatewayError): ProtocolError {
  const { requestId, parts } = request.call;
  const hidden = parts.hideInJson(JSON.stringify(mcpErrorOf(error, requestId)));
  const { code, message, data } = JSON.parse(hidden) as McpError;
  return new ProtocolError(code, message, data);
}
