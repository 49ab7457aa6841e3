import type { Delivery, DeliveryAnswer, KeyLimits, Turn } from "#store/store.ts";
import type { Scope } from "./keys.ts";

/** The caller, after authentication. REST keys may share a name, as may a token and the console's; a `tokenId` is unique. */
export type Caller =
  | ({ surface: "rest"; tokenId: string; name: string; scopes: readonly (Scope | "console")[] } & KeyLimits)
  | ({ surface: "rpc"; tokenId: string; name: string; permissions: readonly string[] } & KeyLimits)
  | { surface: "hooks"; name: string; agents?: undefined };

/** The parts of a call that a handler may use, besides its parameters: no socket, status or header. */
export type CallContext = {
  caller: Caller;
  requestId: string;
  /** The bearer token of a REST call, for the sign-in code that its owner requests. It must not be stored or logged. */
  bearer?: string | undefined;
  /** Aborted when the caller disconnects. */
  signal: AbortSignal;
  /** The number of announcements and agents that the request has passed, as it claims. */
  hops: number;
  /** The caller's idempotency key, bound to surface, token and operation, with a hash of the body. */
  idempotency: { key: string; hash: string } | undefined;
  /** The request for the flight recorder. Created once, when work starts. */
  delivery: () => Delivery;
  /** Pushes the end of the turn to its caller, and with `stream` its pieces. Only on a WebSocket. */
  follow?: ((turn: Turn, options: { stream: boolean; replySeq?: number | undefined }) => void) | undefined;
};

/** The further parts for the handler of a webhook: mappings match headers, and the recorder shows their results. */
export type HookContext = CallContext & {
  caller: Extract<Caller, { surface: "hooks" }>;
  /** By names in lower case. */
  headers: Readonly<Record<string, string | undefined>>;
  /** The mapping that matched the request, or the one in its path. */
  mapping: string | undefined;
  /** `accepted` unless a handler sets another answer. */
  answer: DeliveryAnswer;
  /** Adds a step to the timeline of the request. `detail` is JSON. Has no effect once the delivery is stored. */
  note(step: string, detail?: string): void;
};
