/** The names of the OpenTelemetry conventions for generative AI, v0.1.0, and of those for HTTP and errors, that the traces use. */
export const NAMES = {
  operation: "gen_ai.operation.name",
  agent: "gen_ai.agent.name",
  conversation: "gen_ai.conversation.id",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  responseModel: "gen_ai.response.model",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  tool: "gen_ai.tool.name",
  error: "error.type",
  method: "http.request.method",
  path: "url.path",
  status: "http.response.status_code",
  // Names of the gateway's own.
  turn: "agent_gateway.turn.id",
  attempt: "agent_gateway.attempt",
  delivery: "agent_gateway.delivery.id",
  request: "agent_gateway.request.id",
  caller: "agent_gateway.caller",
  surface: "agent_gateway.surface",
  channel: "agent_gateway.channel",
} as const;

/** The values of `gen_ai.operation.name`, which begin the names of spans, too. */
export const OPERATIONS = { agent: "invoke_agent", chat: "chat", tool: "execute_tool" } as const;
