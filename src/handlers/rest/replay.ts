import type { CallContext, HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { headersOf, whyNotReplayable } from "#core/recorder/deliveries.ts";
import { errors } from "#generated/errors.ts";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import type { RestReplies } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { hopsIn } from "#kit/hops.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import type { Delivery, DeliveryStep, RecordedDelivery } from "#store/store.ts";

type Place = { operation: HooksOperation; name: string | undefined };

export type ReplayParts = {
  /** The webhooks' door, for a request that is let in; it records requests that start nothing. */
  callHook: (place: Place, raw: Buffer, ctx: HookContext) => Promise<{ body: object }>;
  recordBodies: () => boolean;
};

type Ordered = { given: RecordedDelivery; edited: object | undefined };

/**
 * Sends a delivery's body, or the edited one in its place, through today's mappings and handlers. The caller is the one who
 * asked for it; signature, rate limit and idempotency key are not looked at.
 */
export async function replay(
  core: Core,
  { callHook, recordBodies }: ReplayParts,
  { given, edited }: Ordered,
  ctx: CallContext,
): Promise<RestReplies["deliveries.replay"]> {
  const why = whyNotReplayable(given);
  if (why !== undefined || given.body === undefined) throw new GatewayError("delivery-not-replayable", why);
  const kept = Buffer.from(given.body, "latin1");
  const raw = edited === undefined ? kept : bytesOfEdited(edited, kept);
  const again = contextOf(core, { ...given, body: raw.toString("latin1"), bytes: raw.length }, ctx, recordBodies());
  if (edited !== undefined) again.note("request.edited", JSON.stringify({ bytes: raw.length }));
  try {
    const { body } = await callHook(placeOf(given), raw, again);
    return replyOf(given, again, body);
  } catch (thrown) {
    if (again.answer === "unmatched") return replyOf(given, again, { message: "no mapping matched" });
    await recordRefusal(core, again, thrown);
    throw thrown;
  } finally {
    const detail = JSON.stringify({ delivery_id: again.delivery().deliveryId, by: ctx.caller.name });
    await core.deliveries.addStep(given.deliveryId, { at: core.clock.now(), name: "request.sent-again", detail });
  }
}

function bytesOfEdited(edited: object, kept: Buffer): Buffer {
  return Buffer.from(JSON.stringify(withKeptSecrets(edited, jsonOf(kept))));
}

/** Undefined for a body that is no JSON: no field of it was shown as hidden. */
function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Replies hide the secrets of a kept body, so an edited body has `[hidden]` in the same place. */
function withKeptSecrets(edited: unknown, kept: unknown): unknown {
  if (edited === HIDDEN) return typeof kept === "string" ? kept : edited;
  if (!isCollection(edited) || !isCollection(kept)) return edited;
  if (Array.isArray(edited)) return edited.map((item, index) => withKeptSecrets(item, kept[index]));
  return Object.fromEntries(Object.entries(edited).map(([key, value]) => [key, withKeptSecrets(value, kept[key])]));
}

function isCollection(value: unknown): value is Readonly<Record<string | number, unknown>> {
  return typeof value === "object" && value !== null;
}

function placeOf({ operation, path }: Delivery): Place {
  return {
    operation: operation as HooksOperation,
    name: operation === "hooks.mappedByName" ? path.slice(path.lastIndexOf("/") + 1) : undefined,
  };
}

type Started = { message?: string; agent?: string; sessionId?: string; turnId?: string; eventId?: string };

function replyOf(given: RecordedDelivery, again: HookContext, body: Started): RestReplies["deliveries.replay"] {
  return {
    delivery_id: again.delivery().deliveryId,
    replay_of: given.deliveryId,
    outcome: again.answer === "unmatched" ? "unmatched" : "queued",
    message: body.message ?? "",
    mapping: (again.answer === "unmatched" ? undefined : again.mapping) ?? null,
    agent: body.agent ?? null,
    session_id: body.sessionId ?? null,
    turn_id: body.turnId ?? null,
    event_id: body.eventId ?? null,
  };
}

/** A webhook that came out of the flight recorder, with the details of its new delivery. */
function contextOf(core: Core, given: RecordedDelivery, ctx: CallContext, keepBody: boolean): HookContext {
  const { operation, method, path, body, bytes, senderId, deliveryId } = given;
  const headers = headersOf(given);
  const steps: DeliveryStep[] = [];
  let delivery: Delivery | undefined;
  return {
    caller: { surface: "hooks", name: ctx.caller.name },
    requestId: ctx.requestId,
    signal: ctx.signal,
    hops: hopsIn(headers),
    idempotency: undefined,
    headers,
    mapping: operation === "hooks.mappedByName" ? given.mapping : undefined,
    answer: "accepted",
    note(name, detail) {
      steps.push({ at: core.clock.now(), name, detail });
    },
    delivery() {
      // Its source and time are the replay's; its content is the given one's.
      const kept = keepBody ? body : undefined;
      const sent = { surface: "hooks", operation, method, path, headers: given.headers, body: kept, bytes } as const;
      delivery ??= { ...ctx.delivery(), ...sent, senderId, replayOf: deliveryId, steps };
      delivery.mapping = this.mapping;
      delivery.answer = this.answer;
      return delivery;
    },
  };
}

/** Records a refused replay. */
function recordRefusal(core: Core, again: HookContext, thrown: unknown): Promise<void> {
  const { name: error, detail } = GatewayError.from(thrown);
  const { status } = errors[error];
  again.answer = "refused";
  again.note("request.refused", JSON.stringify({ error, status, ...(error !== "internal" && { detail }) }));
  return core.deliveries.record({ ...again.delivery(), status });
}
