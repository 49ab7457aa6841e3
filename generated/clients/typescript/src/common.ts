// Copied by "npm run generate" from scripts/generate/runtime/typescript/common.ts; do not edit.
export { AgentGatewayError, type ClientErrorName, GatewayError } from "./error.ts";
export { type Exchange, Page, type Received, Reply } from "./reply.ts";
export type {
  AgentGatewayOptions,
  CallOptions,
  Fetch,
  GatewayOptions,
  Reconnect,
  SocketClass,
  SocketLike,
  StartOptions,
} from "./settings.ts";
export { TurnStream } from "./turn-stream.ts";
