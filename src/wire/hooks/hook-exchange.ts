import type { Caller, HookContext } from "#core/call.ts";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import { hopsIn } from "#kit/hops.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Delivery, DeliveryAnswer, DeliveryStep } from "#store/store.ts";
import type { WireCall } from "#wire/call/call.ts";
import { createDelivery } from "#wire/call/delivery.ts";
import { idempotencyKeyIn, isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { Sender, Signing } from "./hooks-access.ts";

/** The target of a request: `name` is the last part of `{path}/{name}`. */
export type HookPlace = { operation: HooksOperation; name: string | undefined };

const NOBODY: Extract<Caller, { surface: "hooks" }> = { surface: "hooks", name: "" };

/** One webhook on its way in, with the facts for its delivery. */
export class HookExchange implements HookContext {
  readonly call: WireCall;
  place: HookPlace | undefined = undefined;
  signing: Signing | undefined = undefined;
  sender: Sender | undefined = undefined;
  mapping: string | undefined = undefined;
  answer: DeliveryAnswer = "accepted";
  /** The recorded reason for a refusal, if the answer does not contain it. */
  refusal: string | undefined = undefined;
  /** Its body, once that is known to come from the sender. */
  raw: Buffer | undefined = undefined;
  /** The id that a signed sender gives its delivery. */
  senderId: string | undefined = undefined;
  /** Its request is still being counted, over all gateways. */
  counting: Promise<void> | undefined = undefined;
  readonly #steps: DeliveryStep[] = [];
  #delivery: Delivery | undefined = undefined;

  constructor(call: WireCall) {
    this.call = call;
  }

  get caller(): HookContext["caller"] {
    return this.sender === undefined ? NOBODY : this.sender.caller;
  }

  get headers(): HookContext["headers"] {
    return this.call.req.headers as HookContext["headers"];
  }

  get requestId(): string {
    return this.call.requestId;
  }

  get signal(): AbortSignal {
    return this.call.signal;
  }

  get hops(): number {
    return hopsIn(this.call.req.headers);
  }

  get idempotency(): HookContext["idempotency"] {
    const { sender, place, signing, raw } = this;
    if (sender === undefined || place === undefined || raw === undefined) return undefined;
    const key = signing ? this.senderId : idempotencyKeyIn(this.call.req.headers);
    if (key === undefined) return undefined;
    const { operation, name } = place;
    const whole = `hooks\0${sender.owner}\0${operation}\0${name ?? ""}\0`;
    const known = isIdempotencyKey(key) ? key : `sha256:${hashOf(key).toString("base64url")}`;
    return { key: whole + known, hash: signing?.scheme.idNamesContent ? "" : hashOf(raw).toString("base64url") };
  }

  note(name: string, detail?: string): void {
    this.#steps.push({ at: this.call.parts.clock.now(), name, detail });
  }

  delivery(): Delivery {
    this.#delivery ??= this.#createDelivery();
    this.#delivery.mapping = this.mapping;
    this.#delivery.answer = this.answer;
    // The store replaces the steps by copies without secrets, also if it then refuses the work.
    this.#delivery.steps = this.#steps;
    return this.#delivery;
  }

  #createDelivery(): Delivery {
    const delivery = createDelivery(this.call, this.caller.name, this.raw);
    if (this.signing) delivery.senderId = this.senderId?.slice(0, SENDER_ID_LIMIT);
    return delivery;
  }
}

const SENDER_ID_LIMIT = 256;
