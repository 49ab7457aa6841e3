import type { CallContext, HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { headersOf, whyNotReplayable } from "#core/recorder/deliveries.ts";
import { errors } from "#generated/errors.ts";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import type { RestReplies } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { hopsIn } from "#kit/hops.ts";
import type { Delivery, DeliveryAnswer, DeliveryStep, RecordedDelivery } from "#store/store.ts";
import { HIDDEN } from "./present-deliveries.ts";

type Place = { operation: HooksOperation; name: string | undefined };

export type ReplayParts = {
  /** What the webhooks' door does with a request once it is let in; it records what starts nothing. */
  callHook: (place: Place, raw: Buffer, ctx: HookContext) => Promise<{ body: object }>;
  recordBodies: () => boolean;
};

type Ordered = { given: RecordedDelivery; edited: object | undefined };

/**
 * Sends a delivery's body, or the edited one in its place, through today's mappings and handlers. Whoever asked for it is the caller; its
 * signature, rate limit and idempotency key are not looked at.
 */
export const replay = async (
  core: Core,
  { callHook, recordBodies }: ReplayParts,
  { given, edited }: Ordered,
  ctx: CallContext,
): Promise<RestReplies["deliveries.replay"]> => {
  const why = whyNotReplayable(given);
  if (why !== undefined || given.body === undefined) throw new GatewayError("delivery-not-replayable", why);
  const raw = edited === undefined ? Buffer.from(given.body) : bytesOfEdited(edited, given.body);
  const again = new Replay(core, { ...given, body: raw, bytes: raw.length }, ctx, recordBodies());
  if (edited !== undefined) again.note("request.edited", JSON.stringify({ bytes: raw.length }));
  try {
    const { body } = await callHook(placeOf(given), raw, again);
    return replyOf(again, body);
  } catch (thrown) {
    if (again.answer === "unmatched") return replyOf(again, { message: "no mapping matched" });
    again.refuse(thrown);
    throw thrown;
  }
};

const bytesOfEdited = (edited: object, kept: Uint8Array): Buffer =>
  Buffer.from(JSON.stringify(withKeptSecrets(edited, jsonOf(kept))));

/** Undefined for a body that is no JSON: no field of it was shown as hidden. */
const jsonOf = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
};

/** Replies hide the secrets of a kept body, so an edited body has `[hidden]` in the same place. */
const withKeptSecrets = (edited: unknown, kept: unknown): unknown => {
  if (edited === HIDDEN) return typeof kept === "string" ? kept : edited;
  if (!isCollection(edited) || !isCollection(kept)) return edited;
  if (Array.isArray(edited)) return edited.map((item, index) => withKeptSecrets(item, kept[index]));
  return Object.fromEntries(Object.entries(edited).map(([key, value]) => [key, withKeptSecrets(value, kept[key])]));
};

const isCollection = (value: unknown): value is Readonly<Record<string | number, unknown>> =>
  typeof value === "object" && value !== null;

const placeOf = ({ operation, path }: Delivery): Place => ({
  operation: operation as HooksOperation,
  name: operation === "hooks.mappedByName" ? path.slice(path.lastIndexOf("/") + 1) : undefined,
});

type Started = { message?: string; agent?: string; sessionId?: string; turnId?: string; eventId?: string };

const replyOf = (again: Replay, body: Started): RestReplies["deliveries.replay"] => ({
  delivery_id: again.delivery().deliveryId,
  replay_of: again.given.deliveryId,
  outcome: again.answer === "unmatched" ? "unmatched" : "queued",
  message: body.message ?? "",
  mapping: (again.answer === "unmatched" ? undefined : again.mapping) ?? null,
  agent: body.agent ?? null,
  session_id: body.sessionId ?? null,
  turn_id: body.turnId ?? null,
  event_id: body.eventId ?? null,
});

/** A webhook that came out of the flight recorder, with what its new delivery will tell. */
class Replay implements HookContext {
  readonly caller: HookContext["caller"];
  readonly headers: HookContext["headers"];
  readonly idempotency = undefined;
  readonly given: RecordedDelivery;
  mapping: string | undefined;
  answer: DeliveryAnswer = "accepted";
  readonly #core: Core;
  readonly #ctx: CallContext;
  readonly #keepBody: boolean;
  readonly #steps: DeliveryStep[] = [];
  #delivery: Delivery | undefined = undefined;

  constructor(core: Core, given: RecordedDelivery, ctx: CallContext, keepBody: boolean) {
    this.#core = core;
    this.#ctx = ctx;
    this.#keepBody = keepBody;
    this.given = given;
    this.caller = { surface: "hooks", name: ctx.caller.name };
    this.headers = headersOf(given);
    this.mapping = given.operation === "hooks.mappedByName" ? given.mapping : undefined;
  }

  get requestId(): string {
    return this.#ctx.requestId;
  }

  get hops(): number {
    return hopsIn(this.headers);
  }

  get signal(): AbortSignal {
    return this.#ctx.signal;
  }

  note(name: string, detail?: string): void {
    this.#steps.push({ at: this.#core.clock.now(), name, detail });
  }

  delivery(): Delivery {
    this.#delivery ??= this.#create();
    this.#delivery.mapping = this.mapping;
    this.#delivery.answer = this.answer;
    return this.#delivery;
  }

  /** Where and when it came from is the replay's; what it says is the given one's. */
  #create(): Delivery {
    const { operation, method, path, headers, body, bytes, senderId, deliveryId } = this.given;
    const kept = this.#keepBody ? body : undefined;
    const sent = { surface: "hooks", operation, method, path, headers, body: kept, bytes, senderId } as const;
    return { ...this.#ctx.delivery(), ...sent, replayOf: deliveryId, steps: this.#steps };
  }

  /** Records that it was refused. Its body is the given one's. */
  refuse(thrown: unknown): void {
    const { name: error, detail } = GatewayError.from(thrown);
    const { status } = errors[error];
    this.answer = "refused";
    this.note("request.refused", JSON.stringify({ error, status, ...(error !== "internal" && { detail }) }));
    void this.#core.deliveries.record({ ...this.delivery(), body: undefined, status });
  }
}
