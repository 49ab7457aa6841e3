import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { headersOf, showDelivery, type TimelineStep, whyNotReplayable } from "#core/recorder/deliveries.ts";
import { type ReplayParts, replay } from "#core/recorder/replay.ts";
import { showBody } from "#core/recorder/shown-body.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { RecordedDelivery } from "#store/store.ts";
import { momentOf, pageOf, snakeCased, timeOf } from "./present.ts";

type Bodies = Pick<RestHandlers<CallContext>, "deliveries.list" | "deliveries.get" | "deliveries.replay">;

export function deliveries(core: Core, parts: ReplayParts): Bodies {
  return {
    "deliveries.list": async ({ query: { session_id: sessionId, from, to, ...rest } }) => {
      const between = { from: momentOf("query:from", from), to: momentOf("query:to", to) };
      const { items, next } = await pageOf(core.store.listDeliveries({ ...rest, sessionId, ...between }));
      return { deliveries: items.map((item) => summaryOf(item, core)), next_cursor: next ?? null };
    },
    "deliveries.get": async ({ path }) => {
      const { delivery, timeline } = await core.deliveries.get(path.delivery_id);
      return deliveryOf(delivery, timeline, core);
    },
    "deliveries.replay": async ({ path, body }, ctx) =>
      snakeCased(await replay(core, parts, { deliveryId: path.delivery_id, edited: body.body }, ctx)),
  };
}

/** The contract lists every name of a step; tests check the replies against it. */
type StepName = RestReplies["deliveries.get"]["timeline"][number]["name"];
type Summary = RestReplies["deliveries.list"]["deliveries"][number];

type Hiding = Pick<Core, "hide">;

function summaryOf(delivery: RecordedDelivery, { hide }: Hiding): Summary {
  return snakeCased(showDelivery(delivery, hide));
}

/** The summary with the headers, the body and the timeline. */
function deliveryOf(
  delivery: RecordedDelivery,
  timeline: readonly TimelineStep[],
  hiding: Hiding,
): RestReplies["deliveries.get"] {
  const headers = headersOf(delivery);
  const { body, encoding } = showBody(delivery.body, headers["content-type"]);
  return {
    ...summaryOf(delivery, hiding),
    headers,
    body,
    body_encoding: encoding,
    replayable: whyNotReplayable(delivery) === undefined,
    timeline: timeline.map(({ at, name, detail = null }) => ({ at: timeOf(at), name: name as StepName, detail })),
  };
}
