import { isUtf8 } from "node:buffer";
import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { headersOf, showDelivery, type TimelineStep, whyNotReplayable } from "#core/recorder/deliveries.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import type { RecordedDelivery } from "#store/store.ts";
import { momentOf, pageOf, snakeCased, timeOf } from "./present.ts";
import { type ReplayParts, replay } from "./replay.ts";

type Bodies = Pick<RestHandlers<CallContext>, "deliveries.list" | "deliveries.get" | "deliveries.replay">;

export function deliveries(core: Core, parts: ReplayParts): Bodies {
  return {
    "deliveries.list": async ({ query: { session_id: sessionId, from, to, ...rest } }) => {
      const between = { from: momentOf("query:from", from), to: momentOf("query:to", to) };
      const { items, next } = await pageOf(core.store.listDeliveries({ ...rest, sessionId, ...between }));
      return { deliveries: items.map(summaryOf), next_cursor: next ?? null };
    },
    "deliveries.get": async ({ path }) => {
      const { delivery, timeline } = await core.deliveries.get(path.delivery_id);
      return deliveryOf(delivery, timeline);
    },
    "deliveries.replay": async ({ path, body }, ctx): Promise<RestReplies["deliveries.replay"]> =>
      replay(core, parts, { given: await core.deliveries.read(path.delivery_id), edited: body.body }, ctx),
  };
}

/** Each that is noted anywhere is one that the contract lists; tests hold the replies to it. */
type StepName = RestReplies["deliveries.get"]["timeline"][number]["name"];
type Summary = RestReplies["deliveries.list"]["deliveries"][number];

function summaryOf(delivery: RecordedDelivery): Summary {
  return snakeCased(showDelivery(delivery));
}

/** The same with all that is known of it. */
function deliveryOf(delivery: RecordedDelivery, timeline: readonly TimelineStep[]): RestReplies["deliveries.get"] {
  return {
    ...summaryOf(delivery),
    headers: headersOf(delivery),
    ...bodyOf(delivery.body),
    replayable: whyNotReplayable(delivery) === undefined,
    timeline: timeline.map(({ at, name, detail = null }) => ({ at: timeOf(at), name: name as StepName, detail })),
  };
}

function bodyOf(body: string | undefined): Pick<RestReplies["deliveries.get"], "body" | "body_encoding"> {
  if (body === undefined) return { body: null, body_encoding: null };
  const bytes = Buffer.from(body, "latin1");
  if (!isUtf8(bytes)) return { body: bytes.toString("base64"), body_encoding: "base64" };
  return { body: withoutSecrets(bytes.toString("utf8")), body_encoding: "utf-8" };
}

const NAME =
  '[^"\\\\]*(?:token|secret|passwd|password|passphrase|api_?-?key|private_?-?key|signature|authorization|cookie)s?';
/** The stored body of a refused request can end within the value. */
const SECRET_FIELD = new RegExp(`("${NAME}"\\s*:\\s*)"(?:[^"\\\\]|\\\\[^])*(?:"|\\\\?$)`, "gi");

/** A body as it is shown: a field whose name says that it is a secret is hidden. The kept body, and a replay, has it. */
function withoutSecrets(body: string): string {
  return body.replace(SECRET_FIELD, `$1"${HIDDEN}"`);
}
