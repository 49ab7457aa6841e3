import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type {
  DeliveryOutcome,
  DeliveryQuery,
  DeliveryStep,
  Page,
  RecordedDelivery,
  RecorderLimits,
} from "#store/store.ts";
import {
  type KeptDelivery,
  KINDS,
  KINDS_OF,
  type PackedDelivery,
  readBody,
  readInfo,
  readSteps,
  withoutDetails,
} from "../delivery-codec.ts";
import type { Slices } from "./methods.ts";
import { mayHaveStatus, statusOfTurn } from "./read-turns.ts";
import type { State } from "./state.ts";

/** So many deliveries are looked at before others run. */
const SLICE = 300;

/** The work of a delivery has ended: from now on the recorder may let it go. */
export const finishDelivery = (state: State, deliveryId: string | null | undefined): void => {
  if (typeof deliveryId === "string") state.deliveries.finish(deliveryId);
};

/** Erases what came in a delivery, as its turn was erased. */
export const eraseDelivery = (state: State, deliveryId: string | undefined): void => {
  if (deliveryId !== undefined) state.deliveries.erase(deliveryId);
};

/** Undefined when its turn or event is not kept any more. */
const outcomeOf = (state: State, kind: number, { turnId, eventId }: RecordedDelivery): DeliveryOutcome | undefined => {
  if (kind === KINDS.turn && turnId !== undefined) return statusOfTurn(state, turnId);
  if (kind === KINDS.event && eventId !== undefined) return state.events.statusOf(eventId);
  return undefined;
};

const readShort = (state: State, kept: KeptDelivery): RecordedDelivery => {
  const delivery = readInfo(kept);
  delivery.outcome = outcomeOf(state, kept[0], delivery) ?? delivery.outcome;
  return delivery;
};

const readWhole = (state: State, deliveryId: string): RecordedDelivery | undefined => {
  const kept = state.deliveries.read(deliveryId);
  if (!kept) return undefined;
  const [, , headers, steps, body] = kept;
  const delivery = readShort(state, kept);
  if (delivery.turnId === undefined || statusOfTurn(state, delivery.turnId)) {
    return { ...delivery, headers, steps: readSteps(steps), body: readBody(body) };
  }
  // Its session was deleted: it is erased, or repeats one that was.
  return { ...delivery, headers, steps: readSteps(withoutDetails(steps)) };
};

/** Whether it is what is asked for, but for its outcome. */
const isWanted = (delivery: RecordedDelivery, query: DeliveryQuery): boolean => {
  const { surface, mapping, sessionId, from = 0, to = Infinity, id } = query;
  const { deliveryId, at, requestId, turnId, eventId, senderId } = delivery;
  if (at < from || at >= to) return false;
  if (surface !== undefined && delivery.surface !== surface) return false;
  if (mapping !== undefined && delivery.mapping !== mapping) return false;
  if (sessionId !== undefined && delivery.sessionId !== sessionId) return false;
  return id === undefined || [deliveryId, requestId, turnId, eventId, delivery.sessionId, senderId].includes(id);
};

type Recorded = { delivery: PackedDelivery; recorder: RecorderLimits };

export const deliveryMethods = {
  write: {
    recordDelivery: (state: State, { delivery, recorder }: Recorded): void => {
      state.deliveries.add(delivery, recorder);
    },
    addDeliveryStep: (state: State, { deliveryId, step }: { deliveryId: string; step: DeliveryStep }): void =>
      state.deliveries.addStep(deliveryId, step),
  },
  read: {
    getDelivery: (state: State, deliveryId: string) => readWhole(state, deliveryId),

    *listDeliveries(state: State, query: DeliveryQuery): Slices {
      const { limit, cursor, outcome } = query;
      const [least, most] = outcome === undefined ? ANY : KINDS_OF[outcome];
      // What is looked for stands in the record as JSON: most records are passed over without being taken apart.
      const text = query.id ?? query.sessionId ?? query.mapping;
      const sought = {
        text: text === undefined ? undefined : JSON.stringify(text),
        surface: query.surface,
        kinds: [least, most],
      } as const;
      const isOfTurn = outcome !== undefined && most === KINDS.turn;
      const page: Page<RecordedDelivery> = { items: [], next: undefined };
      let lastPlace = 0;
      let place = cursor === undefined ? state.deliveries.last + 1 : decodeCursor(cursor);
      while (place > 0 && limit > 0) {
        const { rows, next } = state.deliveries.below(place, sought, SLICE);
        for (const [at, kept] of rows) {
          if (kept[0] < least || kept[0] > most) continue;
          const delivery = readInfo(kept);
          if (!isWanted(delivery, query)) continue;
          if (isOfTurn && !mayHaveStatus(state, delivery.turnId ?? "", outcome)) continue;
          // Last, as its turn has to be found.
          delivery.outcome = outcomeOf(state, kept[0], delivery) ?? delivery.outcome;
          if (outcome !== undefined && delivery.outcome !== outcome) continue;
          if (page.items.length === limit) return { ...page, next: encodeCursor(lastPlace) };
          page.items.push(delivery);
          lastPlace = at;
        }
        place = next;
        yield;
      }
      return page;
    },
  },
};

const ANY = [KINDS.turn, KINDS.gone] as const;
