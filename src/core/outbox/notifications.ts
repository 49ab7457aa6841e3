import type { Outcome, Unsendable } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import { newBareId } from "#kit/ids.ts";
import type { Notification, OutgoingNotification, Store } from "#store/store.ts";
import { unsendable } from "./announcements.ts";
import { nameOf } from "./endpoints.ts";

/** Sends a notification to its endpoint once. */
export async function sendNotification(
  { store, settings }: Pick<CoreParts, "store" | "settings">,
  { id, endpoint: of, hops }: OutgoingNotification,
  signal: AbortSignal,
): Promise<Outcome | Unsendable> {
  const endpoint = settings().notify.get(nameOf(of));
  if (!endpoint) return unsendable("the endpoint was removed from the configuration");
  if (isLoop(hops)) return unsendable(loopWords());
  const notification = await store.getNotification(id);
  if (!notification) return unsendable("it is no longer stored");
  const { eventId, type, at } = notification;
  const data = endpoint.hasReplies ? await withReply(store, notification) : notification.data;
  return await endpoint.notify({ eventId, type, at, data, hops }, signal);
}

/** The data of a turn's end with its reply, which is null if the turn has none or is no longer stored. */
async function withReply(store: Store, { type, turnId, data }: Notification): Promise<string> {
  if (!type.startsWith("turn.") || turnId === undefined) return data;
  const reply = (await store.getTurn(turnId))?.reply ?? null;
  return JSON.stringify({ ...JSON.parse(data), reply });
}

/** The result of a test event. `status` is the HTTP status, if there was an answer. */
export type EndpointTest = { delivered: boolean; status: number | null; reason: string | null; ms: number };

/** Sends a test event once, without the queue, also to a stopped endpoint. Undefined if the endpoint is not configured. */
export async function testEndpoint(
  { settings, clock }: Pick<CoreParts, "settings" | "clock">,
  name: string,
  signal: AbortSignal,
): Promise<EndpointTest | undefined> {
  const endpoint = settings().notify.get(name);
  if (!endpoint) return undefined;
  const [at, began] = [clock.now(), clock.monotonic()];
  const data = JSON.stringify({ endpoint: name });
  const sent = { eventId: `ntf_${newBareId(at)}_test`, type: "notify.test", at, data, hops: 0 };
  const outcome = await endpoint.notify(sent, signal);
  const reason = outcome.kind === "delivered" ? null : outcome.reason;
  const ms = Math.round(clock.monotonic() - began);
  return { delivered: outcome.kind === "delivered", status: outcome.code ?? null, reason, ms };
}
