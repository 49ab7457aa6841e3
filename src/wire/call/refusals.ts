import { errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import { routes } from "#generated/routes.ts";
import type { Clock } from "#kit/clock.ts";
import type { ErrorName } from "#kit/errors.ts";
import type { Delivery } from "#store/store.ts";
import type { WireCall } from "./call.ts";
import { createDelivery } from "./delivery.ts";
import { createTally } from "./rate-limit.ts";
import { placeOfStranger, type Route } from "./routes.ts";

/**
 * The most refusals that are recorded in a period: for one network and error, for all strangers of a network, and in total. The metrics count
 * every one. The ring of refused strangers holds 1 000, so one network needs ten hours to displace all others. Refusals of authenticated callers are
 * in the recorder's main ring, which strangers cannot displace.
 */
const ALIKE = { most: 20, ms: 60_000 };
const STRANGERS = { most: 100, ms: 3_600_000 };
const ALL = { most: 20, ms: 1_000 };
/** No more than this is kept of a text that a stranger chooses. */
const HEADER_CHARS = 4_096;
const METHOD_CHARS = 32;
const ID_CHARS = 256;

/** A request that was answered with an error, as the door that refused it knows it. */
type Failed = {
  operation: string;
  error: string | undefined;
  reason: string | undefined;
  turnId: string | undefined;
};
type RefusedSocketCall = { outcome: Failed; text: string; delivery(operation: string, entry: string): Delivery };

/**
 * Records refused requests, so that they can be distinguished from requests that never arrived: callers without access or permission, callers
 * past their rate, and calls that would have started work. Never a token, and never a stranger's body. A flood costs a look-up in a
 * table: at most 20 a minute are recorded for one network and error, 100 an hour for the strangers of one network, and 20 a second in all.
 * Authenticated callers have 20 a second of their own. The webhooks' door records its own, within the same bounds.
 */
export function createRefusals({ record, clock }: { record: (delivery: Delivery) => unknown; clock: Clock }) {
  const countAlike = createTally(clock, ALIKE.ms);
  const countStrangers = createTally(clock, STRANGERS.ms);
  const [strangers, known] = [
    { since: -Infinity, count: 0 },
    { since: -Infinity, count: 0 },
  ];

  const admits = (network: string, error: string, isKnown: boolean): boolean => {
    const all = isKnown ? known : strangers;
    const now = clock.monotonic();
    if (now - all.since >= ALL.ms) {
      all.since = now;
      all.count = 0;
    }
    if (all.count >= ALL.most) return false;
    if (countAlike(`${error} ${isKnown} ${network}`).count > ALIKE.most) return false;
    if (!isKnown && countStrangers(network).count > STRANGERS.most) return false;
    all.count++;
    return true;
  };

  const keep = (delivery: Delivery, error: string, reason: string | undefined, status: number): void => {
    const detail = JSON.stringify({ error, status: errors[error as ErrorName].status, detail: reason ?? null });
    const steps = [{ at: delivery.at, name: "request.refused", detail }];
    record({ ...delivery, answer: "refused", status, steps });
  };

  return {
    /** True if one more refusal of this network is recorded. It is counted then. `isKnown`: its caller was authenticated. */
    admits,
    /** To be called for every request that was answered with an error. */
    note(call: WireCall, status: number): void {
      const { path, peer, line } = call;
      const { error, surface, operation, turnId, caller } = line;
      if (error === undefined || turnId !== undefined || surface === "hooks" || !isRecorded(error, operation)) return;
      if (surface === "public" && !path.startsWith("/api/v1") && !path.startsWith("/v1/")) return;
      if (!admits(peer.network, error, caller !== undefined)) return;
      const delivery = createDelivery(call, caller ?? "", line.body);
      if (caller === undefined) truncate(delivery);
      if (caller === undefined && surface !== "rpc") Object.assign(delivery, placeOfStranger(call.req.method, path));
      keep(delivery, error, line.reason, status);
    },
    /** The same for calls over a WebSocket. */
    noteSocketCall(call: RefusedSocketCall, network: string): void {
      const { error, operation, turnId, reason } = call.outcome;
      if (error === undefined || turnId !== undefined || !isRecorded(error, operation) || !admits(network, error, true))
        return;
      keep(call.delivery(operation, call.text), error, reason, OK);
    },
  };
}

export type Refusals = ReturnType<typeof createRefusals>;

/** The status of a call over a WebSocket: whatever its answer says, it was given. */
const OK = 200;

/** The operations that would have started work. */
const STARTING: ReadonlySet<string> = new Set([
  ...(routes as readonly Route[]).flatMap(({ surface, idempotent, operation }) =>
    (surface === "rest" || surface === "openai") && idempotent ? [operation] : [],
  ),
  ...Object.entries(methods).flatMap(([name, { idempotent }]) => (idempotent ? [name] : [])),
  "mcp.tools/call",
]);

function isRecorded(error: string, operation: string): boolean {
  if (error === "rate-limited" || STARTING.has(operation)) return true;
  const { status } = errors[error as ErrorName];
  return status === 401 || status === 403;
}

/** Cuts the texts of unauthenticated callers: enough is stored to distinguish them. */
export function truncate(delivery: Delivery): Delivery {
  const { method, headers, senderId } = delivery;
  const isLong = headers.length > HEADER_CHARS;
  delivery.method = method.slice(0, METHOD_CHARS);
  delivery.senderId = senderId?.slice(0, ID_CHARS);
  if (isLong) delivery.headers = headers.slice(0, Math.max(0, headers.lastIndexOf("\n", HEADER_CHARS)));
  return delivery;
}
