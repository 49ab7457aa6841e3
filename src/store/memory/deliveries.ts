import type { DeliveryOutcome, DeliveryQuery, RecordedDelivery, Store } from "#store/store.ts";
import { hasWanted, KEPT, type Kept, keptAt, OUTCOMES, surfaceAt, timeAt } from "./delivery-codec.ts";
import { wantedId } from "./packed-reader.ts";
import { NO_SLOT } from "./record-segments.ts";
import { scanBack } from "./scan.ts";
import { hasTurn, type State } from "./state.ts";

type DeliveryMethods = Pick<Store, "recordDelivery" | "addDeliveryStep" | "getDelivery" | "listDeliveries">;

const NO_WORK = {};

export const deliveryMethods = (state: State): DeliveryMethods => ({
  recordDelivery: (delivery, recorder, work = NO_WORK) => state.deliveries.record(delivery, recorder, work),
  addDeliveryStep: async (deliveryId, step) => state.deliveries.addStep(deliveryId, step),
  getDelivery: async (deliveryId) => {
    const slot = state.deliveries.slotOf(deliveryId);
    return slot === NO_SLOT ? undefined : read(state, slot, false);
  },
  listDeliveries: async (query) => {
    const { limit, cursor } = query;
    return scanBack({
      order: state.deliveries.order,
      limit,
      cursor,
      matches: filterOf(state, query),
      lengthOf: () => 0,
      read: (slot) => read(state, slot, true),
    });
  },
});

/** The delivery with its outcome, which its turn or event may have to tell. */
const read = (state: State, slot: number, isShort: boolean): RecordedDelivery => {
  const { bytes, from } = state.deliveries.placeOf(slot);
  const delivery = state.deliveries.read(slot, isShort);
  const kept = keptAt(bytes, from);
  // In a list, only as long as something is being erased: all else has its outcome by then.
  if ((!isShort || state.erasing.size > 0) && isErased(state, delivery)) return withoutContent(delivery);
  if (kept === KEPT.turn) delivery.outcome = outcomeOfTurn(state, delivery.turnId ?? "");
  if (kept === KEPT.event) delivery.outcome = outcomeOfEvent(state, delivery.eventId ?? "");
  return delivery;
};

/** Its session was deleted: it will be erased in a moment, or repeats one that was. */
const isErased = (state: State, { turnId }: RecordedDelivery): boolean =>
  turnId !== undefined && state.active.get(turnId) === undefined && !hasTurn(state, turnId);

const withoutContent = (delivery: RecordedDelivery): RecordedDelivery => {
  const steps = delivery.steps.map((step) => ({ ...step, detail: undefined }));
  const outcome = delivery.answer === "accepted" ? "gone" : delivery.outcome;
  return { ...delivery, outcome, body: undefined, steps };
};

const outcomeOfTurn = (state: State, turnId: string): DeliveryOutcome => state.active.get(turnId)?.status ?? "gone";

const outcomeOfEvent = (state: State, eventId: string): DeliveryOutcome => {
  const slot = state.events.slotOf(eventId);
  return slot === NO_SLOT ? "gone" : state.events.statusOf(slot);
};

/** A look at a record in its place: a list of few among very many must not take each of them apart. */
const filterOf = (state: State, query: DeliveryQuery): ((slot: number) => boolean) => {
  const { surface, outcome, from: since = 0, to: until = Infinity, mapping, sessionId } = query;
  const id = query.id === undefined ? undefined : wantedId(query.id);
  const isWanted = mapping !== undefined || sessionId !== undefined || id !== undefined;
  return (slot) => {
    const { bytes, from } = state.deliveries.placeOf(slot);
    const at = timeAt(bytes, from);
    if (at < since || at >= until) return false;
    if (surface !== undefined && surfaceAt(bytes, from) !== surface) return false;
    if (outcome !== undefined && !mayBe(state, keptAt(bytes, from), outcome)) return false;
    if (isWanted && !hasWanted(bytes, from, { id, sessionId, mapping })) return false;
    return outcome === undefined || read(state, slot, true).outcome === outcome;
  };
};

/** Whether what the recorder keeps leaves that outcome open. Nearly all that is kept has ended, as is told by one byte. */
const mayBe = (state: State, kept: Kept, outcome: DeliveryOutcome): boolean =>
  kept === KEPT.turn ||
  kept === KEPT.event ||
  outcome === OUTCOMES[kept] ||
  (outcome === "gone" && state.erasing.size > 0);
