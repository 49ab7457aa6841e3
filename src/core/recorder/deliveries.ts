import { GatewayError } from "#kit/errors.ts";
import type { Events } from "#observe/events.ts";
import type {
  Delivery,
  DeliveryQuery,
  DeliveryWork,
  Page,
  RecordedDelivery,
  RecorderLimits,
  Store,
} from "#store/store.ts";
import { readTimeline, type TimelineStep } from "./delivery-timeline.ts";

/** The flight recorder, read and written: requests that came in, and their results. */
export const createDeliveries = (parts: { store: Store; events: Events; limits: () => RecorderLimits }) => {
  const { store, events, limits } = parts;

  const read = async (deliveryId: string): Promise<RecordedDelivery> => {
    const delivery = await store.getDelivery(deliveryId);
    if (!delivery) throw new GatewayError("delivery-not-found", `The recorder has no delivery ${deliveryId}.`);
    return delivery;
  };

  return {
    list: (query: DeliveryQuery): Promise<Page<RecordedDelivery>> => store.listDeliveries(query),
    read,
    async get(deliveryId: string): Promise<{ delivery: RecordedDelivery; timeline: TimelineStep[] }> {
      const delivery = await read(deliveryId);
      return { delivery, timeline: await readTimeline(store, delivery) };
    },
    /**
     * Records a request that started nothing; `work` is the work that a repeat belongs to. Never throws: a failure is logged, and
     * the request is answered all the same. A caller that names the delivery in an answer waits for it.
     */
    async record(delivery: Delivery, work?: DeliveryWork): Promise<void> {
      try {
        await store.recordDelivery(delivery, limits(), work);
      } catch (error) {
        events.storeFailed({ operation: "record", error });
      }
    },
  };
};

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Why a delivery cannot be sent again; undefined when it can. */
export const whyNotReplayable = ({ surface, answer, body, bytes, caller }: Delivery): string | undefined => {
  if (surface !== "hooks") return "It came by an API, whose client can send it again; only webhooks are replayed.";
  if (answer === "challenge") return "A sender asked whether the address is ours; there is nothing to do again.";
  if (body !== undefined) return undefined;
  if (caller === "") return "Nobody was authenticated, so its body was not kept.";
  if (answer === "refused" && bytes === 0) return "It was refused before its body was read.";
  return "Its body is not kept: recorder.bodies was off, or its session was deleted.";
};

/** The HTTP status of its answer. A webhook that was stored with its work is answered 200, right after it. */
export const statusOfDelivery = ({ surface, answer, status }: Delivery): number | undefined =>
  status ?? (surface === "hooks" && answer === "accepted" ? 200 : undefined);

/** The kept headers by their names. Repeated headers are joined, as Node does. */
export const headersOf = ({ headers }: Pick<Delivery, "headers">): Record<string, string> => {
  const found = new Map<string, string>();
  for (const line of headers === "" ? [] : headers.split("\n")) {
    const colon = line.indexOf(": ");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
    const before = found.get(name);
    found.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(found);
};
