import type { Delivery, DeliveryAnswer, Turn } from "#store/store.ts";
import type { Scope } from "./keys.ts";

/** The caller, after authentication. REST keys may share a name, as may a token and the console's; a `tokenId` is unique. */
export type Caller =
  | { surface: "rest"; tokenId: string; name: string; scopes: readonly (Scope | "console")[] }
  | { surface: "rpc"; tokenId: string; name: string; permissions: readonly string[] }
  | { surface: "hooks"; name: string };

/** The parts of a call that a handler may use beside its params. No socket, no status, no header. */
export type CallContext = {
  caller: Caller;
  requestId: string;
  /** The bearer token of a call of REST, for a code that signs its owner in elsewhere. Not to be stored or logged. */
  bearer?: string | undefined;
  /** Aborts when the caller has gone. */
  signal: AbortSignal;
  /** The number of announcements and agents that the request came through, as it says. */
  hops: number;
  /** The caller's idempotency key, bound to surface, token and operation, with a hash of the body. */
  idempotency: { key: string; hash: string } | undefined;
  /** The request as the flight recorder keeps it. Made when work starts, and then once. */
  delivery: () => Delivery;
  /** On a WebSocket: pushes the end of the caller's turn to it, and with `stream` its pieces. Absent elsewhere. */
  follow?: ((turn: Turn, options: { stream: boolean; replySeq?: number | undefined }) => void) | undefined;
};

/** The further parts for the handler of a webhook: mappings look at headers, and the recorder tells how they were tried. */
export type HookContext = CallContext & {
  caller: Extract<Caller, { surface: "hooks" }>;
  /** Names in small letters. */
  headers: Readonly<Record<string, string | undefined>>;
  /** The mapping that took the request, or that its path names. */
  mapping: string | undefined;
  /** `accepted`, until somebody knows better. */
  answer: DeliveryAnswer;
  /** Notes a step of the request's way in for its timeline; `detail` is JSON. Too late once its delivery was stored. */
  note(step: string, detail?: string): void;
};
