import { type JSONRPCMessage, McpServer, type Transport } from "@modelcontextprotocol/server";
import { type ErrorName, GatewayError } from "#kit/errors.ts";
import type { McpRequest } from "./mcp-request.ts";

/** The names of the protocol's errors by their code. Each other one is an invalid request. */
const NAMES: Readonly<Record<number, ErrorName>> = {
  [-32700]: "parse-error",
  [-32601]: "method-not-found",
  [-32602]: "invalid-params",
  [-32603]: "internal",
};

/** Writes the outcome of a message to the access line, once. An error that was thrown by a body of the gateway is there already. */
export function reportOutcome(request: McpRequest, answer: { error?: { code: number; message: string } }): void {
  const { line } = request.call;
  const { error } = answer;
  if (error) line.failed(new GatewayError(NAMES[error.code] ?? "invalid-request", error.message));
  if (line.error === undefined) line.succeeded();
  request.isReported = true;
}

/** A server that reports its answer, whatever the revision of the client and the form in which it is sent. */
export class ReportingServer extends McpServer {
  readonly #request: McpRequest;

  constructor(request: McpRequest, ...own: ConstructorParameters<typeof McpServer>) {
    super(...own);
    this.#request = request;
  }

  override async connect(transport: Transport): Promise<void> {
    const send = transport.send.bind(transport);
    transport.send = (message: JSONRPCMessage, options) => {
      if ("error" in message || "result" in message) reportOutcome(this.#request, message as { error?: never });
      return send(message, options);
    };
    await super.connect(transport);
  }
}
