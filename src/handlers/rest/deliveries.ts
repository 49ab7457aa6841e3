import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Page } from "#store/store.ts";
import { deliveryOf, summaryOf } from "./present-deliveries.ts";
import { type ReplayParts, replay } from "./replay.ts";

type Bodies = Pick<RestHandlers<CallContext>, "deliveries.list" | "deliveries.get" | "deliveries.replay">;

export const deliveries = (core: Core, parts: ReplayParts): Bodies => ({
  "deliveries.list": async ({ query: { session_id: sessionId, from, to, ...rest } }) => {
    const between = { from: momentOf("from", from), to: momentOf("to", to) };
    const { items, next } = await pageOf(core.deliveries.list({ ...rest, sessionId, ...between }));
    return { deliveries: items.map(summaryOf), next_cursor: next ?? null };
  },
  "deliveries.get": async ({ path }) => {
    const { delivery, timeline } = await core.deliveries.get(path.delivery_id);
    return deliveryOf(delivery, timeline);
  },
  "deliveries.replay": async ({ path, body }, ctx): Promise<RestReplies["deliveries.replay"]> =>
    replay(core, parts, { given: await core.deliveries.read(path.delivery_id), edited: body.body }, ctx),
});

/** A moment of the query; the contract sees to its form, not to the calendar. */
const momentOf = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const at = Date.parse(text);
  if (!Number.isNaN(at)) return at;
  const errors = [{ pointer: `query:${name}`, message: "is no moment of the calendar" }];
  throw new GatewayError("invalid-request", `${name} is no moment of the calendar.`, { errors });
};

/** A page of the store's; a cursor that it does not know is the request's fault. */
export const pageOf = async <T>(reading: Promise<Page<T>>): Promise<Page<T>> => {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof GatewayError) || error.name !== "invalid-params") throw error;
    const errors = [{ pointer: "query:cursor", message: "is not one that a list gave; begin again without it" }];
    throw new GatewayError("invalid-request", "The cursor is unknown.", { errors });
  }
};
