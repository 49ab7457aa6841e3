import type { CallContext, HookContext } from "#core/call.ts";
import { errors } from "#generated/errors.ts";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { isForm } from "#kit/forms.ts";
import { hopsIn } from "#kit/hops.ts";
import type { Delivery, DeliveryStep, RecordedDelivery } from "#store/store.ts";
import { type Deliveries, headersOf, whyNotReplayable } from "./deliveries.ts";
import { readEditedBody } from "./shown-body.ts";

type Place = { operation: HooksOperation; name: string | undefined };
type HookReply = { message?: string; agent?: string; sessionId?: string; turnId?: string; eventId?: string };

export type ReplayParts = {
  /** Handles a webhook after the checks of its sender. Records a request that starts nothing. */
  callHook: (place: Place, raw: Buffer, ctx: HookContext) => Promise<{ body: object }>;
  recordBodies: () => boolean;
};

/** The delivery to replay, and the body to send in place of its own. */
type ReplayRequest = { deliveryId: string; edited: object | undefined };

/** The result of a replay: the new delivery, and the work that it started. */
export type Replay = {
  deliveryId: string;
  replayOf: string;
  outcome: "queued" | "unmatched";
  message: string;
  mapping: string | null;
  agent: string | null;
  sessionId: string | null;
  turnId: string | null;
  eventId: string | null;
};

/**
 * Sends the body of a delivery, or the edited one, through the mappings and handlers in force, as a new delivery of the caller. Signature,
 * rate limit and idempotency key are not checked. Of the hops of both requests, the larger number counts. Throws `delivery-not-found` and
 * `delivery-not-replayable`.
 */
export async function replay(
  { clock, deliveries }: { clock: Clock; deliveries: Deliveries },
  { callHook, recordBodies }: ReplayParts,
  { deliveryId, edited }: ReplayRequest,
  ctx: CallContext,
): Promise<Replay> {
  const recorded = await deliveries.read(deliveryId);
  const why = whyNotReplayable(recorded);
  if (why !== undefined || recorded.body === undefined) throw new GatewayError("delivery-not-replayable", why);
  const stored = Buffer.from(recorded.body, "latin1");
  const type = headersOf(recorded)["content-type"];
  const raw = edited === undefined ? stored : readEditedBody(edited, stored, type);
  const sent: RecordedDelivery = {
    ...recorded,
    headers: edited !== undefined && isForm(type) ? asJson(recorded.headers) : recorded.headers,
    body: recordBodies() ? raw.toString("latin1") : undefined,
    bytes: raw.length,
  };
  const hook = contextOf(clock, sent, ctx);
  if (edited !== undefined) hook.note("request.edited", JSON.stringify({ bytes: raw.length }));
  try {
    const { body } = await callHook(placeOf(recorded), raw, hook);
    return replayOf(recorded, hook, body);
  } catch (error) {
    if (hook.answer === "unmatched") return replayOf(recorded, hook, { message: "no mapping matched" });
    await deliveries.record(refused(hook, error));
    throw error;
  } finally {
    const detail = JSON.stringify({ delivery_id: hook.delivery().deliveryId, by: ctx.caller.name });
    await deliveries.addStep(deliveryId, { at: clock.now(), name: "request.sent-again", detail });
  }
}

/** The headers of an edited form, which is sent as JSON. */
function asJson(headers: string): string {
  return headers.replace(/^content-type: .*$/m, "content-type: application/json");
}

function placeOf({ operation, path }: Delivery): Place {
  return {
    operation: operation as HooksOperation,
    name: operation === "hooks.mappedByName" ? path.slice(path.lastIndexOf("/") + 1) : undefined,
  };
}

function replayOf({ deliveryId }: RecordedDelivery, hook: HookContext, reply: HookReply): Replay {
  const isUnmatched = hook.answer === "unmatched";
  return {
    deliveryId: hook.delivery().deliveryId,
    replayOf: deliveryId,
    outcome: isUnmatched ? "unmatched" : "queued",
    message: reply.message ?? "",
    mapping: (isUnmatched ? undefined : hook.mapping) ?? null,
    agent: reply.agent ?? null,
    sessionId: reply.sessionId ?? null,
    turnId: reply.turnId ?? null,
    eventId: reply.eventId ?? null,
  };
}

/** The context of a replayed webhook. Its delivery has the source and the time of the replay, and the content of `sent`. */
function contextOf(clock: Clock, sent: RecordedDelivery, ctx: CallContext): HookContext {
  const { operation, method, path, headers: lines, body, bytes, senderId, deliveryId } = sent;
  const headers = headersOf(sent);
  const steps: DeliveryStep[] = [];
  let delivery: Delivery | undefined;
  return {
    caller: { surface: "hooks", name: ctx.caller.name },
    requestId: ctx.requestId,
    signal: ctx.signal,
    hops: Math.max(hopsIn(headers), ctx.hops),
    idempotency: undefined,
    headers,
    mapping: operation === "hooks.mappedByName" ? sent.mapping : undefined,
    answer: "accepted",
    note(name, detail) {
      steps.push({ at: clock.now(), name, detail });
    },
    delivery() {
      const content = { surface: "hooks", operation, method, path, headers: lines, body, bytes, senderId } as const;
      delivery ??= { ...ctx.delivery(), ...content, replayOf: deliveryId };
      delivery.mapping = this.mapping;
      delivery.answer = this.answer;
      // The store replaces the steps by copies without secrets, also if it then refuses the work.
      delivery.steps = steps;
      return delivery;
    },
  };
}

/** The delivery of a refused replay. */
function refused(hook: HookContext, thrown: unknown): Delivery {
  const { name: error, detail } = GatewayError.from(thrown);
  const { status } = errors[error];
  hook.answer = "refused";
  hook.note("request.refused", JSON.stringify({ error, status, ...(error !== "internal" && { detail }) }));
  return { ...hook.delivery(), status };
}
