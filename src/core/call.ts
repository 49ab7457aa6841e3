import type { Delivery, DeliveryAnswer, Turn } from "#store/store.ts";
import type { Scope } from "./keys.ts";

/** Who is calling, after authentication. Two keys of REST may have one name, as may a token and the console's, but never one `tokenId`. */
export type Caller =
  | { surface: "rest"; tokenId: string; name: string; scopes: readonly (Scope | "console")[] }
  | { surface: "rpc"; tokenId: string; name: string; permissions: readonly string[] }
  | { surface: "hooks"; name: string };

/** What a handler may know of the call beside its params. No socket, no status, no header. */
export type CallContext = {
  caller: Caller;
  requestId: string;
  /** Aborts when the caller has gone. */
  signal: AbortSignal;
  /** Through how many announcements and agents the request came, as it says. */
  hops: number;
  /** The caller's idempotency key, bound to surface, token and operation, with a hash of the body. */
  idempotency: { key: string; hash: string } | undefined;
  /** The request as the flight recorder keeps it. Made when work starts, and then once. */
  delivery: () => Delivery;
  /** On a WebSocket: pushes the end of the caller's turn to it, and with `stream` its pieces. Absent elsewhere. */
  follow?: ((turn: Turn, options: { stream: boolean; replySeq?: number | undefined }) => void) | undefined;
};

/** What the handler of a webhook may know beside that: mappings look at headers, and the recorder tells how they were tried. */
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
