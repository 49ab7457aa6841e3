import type { HookContext } from "#core/call.ts";
import { errors } from "#generated/errors.ts";
import type { HooksHandlers, HooksOperation } from "#generated/hooks-handlers.ts";
import { bodies } from "#generated/validators/hooks.js";
import { GatewayError } from "#kit/errors.ts";
import { isForm } from "#kit/forms.ts";
import type { Delivery, DeliveryWork } from "#store/store.ts";
import { parseForm, parseJson } from "#wire/call/body.ts";
import { faultOf, invalidRequest } from "#wire/call/body-fault.ts";
import type { HookPlace } from "./hook-exchange.ts";

export type HookReply = { body: object; replayed: boolean };

/** Handles a body that was read and validated. */
export type RunHook = (place: HookPlace, body: unknown, ctx: HookContext) => Promise<HookReply>;
/** Handles an unchanged body, from its sender or from a replay of the flight recorder. */
type CallHook = (place: HookPlace, raw: Buffer, ctx: HookContext) => Promise<HookReply>;

type HookCallsParts = {
  handlers: HooksHandlers<HookContext>;
  /** Keeps a request that started nothing; `work` is the work that it repeats. Never throws. May return a promise to wait for. */
  record: (delivery: Delivery, work?: DeliveryWork) => void | Promise<void>;
};

type Named = { turnId?: string; sessionId?: string; eventId?: string; agent?: string; deliveryId?: string };

type Handler = (call: unknown, ctx: HookContext) => HookReply | Promise<HookReply>;

/** Runs webhooks, and records each that starts no work: a handler that starts work stores the delivery with it. */
export function createHookCalls({ handlers, record }: HookCallsParts): { run: RunHook; call: CallHook } {
  const noteRepeat = ({ turnId, sessionId, eventId, agent, deliveryId }: Named, ctx: HookContext): void => {
    ctx.answer = "repeated";
    ctx.note("request.repeated", JSON.stringify({ turn_id: turnId, event_id: eventId, delivery_id: deliveryId }));
    void record(answered(ctx, 200), { turnId, sessionId, eventId, agent });
  };

  const run: RunHook = async ({ operation, name }, body, ctx) => {
    let reply: HookReply;
    try {
      reply = await (handlers[operation] as Handler)({ path: { name }, headers: ctx.headers, body }, ctx);
    } catch (error) {
      // A request that no mapping matched is a kind of its own, also where it is answered with an error.
      if (ctx.answer === "unmatched") void record(answered(ctx, errors[GatewayError.from(error).name].status));
      throw error;
    }
    if (reply.replayed) noteRepeat(reply.body, ctx);
    // The answer names the delivery, which is to be found then.
    else if (ctx.answer !== "accepted") await record(answered(ctx, 200));
    return reply;
  };

  return {
    run,
    call: async (place, raw, ctx) => await run(place, readHookBody(place.operation, raw, ctx.headers), ctx),
  };
}

function answered(ctx: HookContext, status: number): Delivery {
  const delivery = ctx.delivery();
  delivery.status = status;
  return delivery;
}

/** The body of an operation, validated against the contract, with its defaults filled in. */
export function readHookBody(operation: HooksOperation, raw: Buffer, headers: HookContext["headers"]): unknown {
  const body = isForm(headers["content-type"]) ? parseForm(raw) : parseJson(raw);
  const validate = bodies[operation];
  if (!validate(body)) throw invalidRequest([faultOf(validate.errors?.[0], body)]);
  return body;
}
