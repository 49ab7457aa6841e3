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
