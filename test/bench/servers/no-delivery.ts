import { idLike, newId } from "#kit/ids.ts";

// Stands in for wire/delivery.ts in servers/unrecorded.ts.

type Real = typeof import("#wire/call/delivery.ts");

export const NO_STEPS: Real["NO_STEPS"] = Object.freeze([]);

/** One for all requests. Answers name a delivery, and the ids of turns and events are like its own. */
const NONE: ReturnType<Real["createDelivery"]> = {
  deliveryId: newId("dlv", Date.now()),
  at: 0,
  surface: "rpc",
  operation: "",
  method: "",
  path: "",
  address: "",
  requestId: "",
  caller: "",
  headers: "",
  body: undefined,
  bytes: 0,
  answer: "accepted",
  status: undefined,
  mapping: undefined,
  replayOf: undefined,
  senderId: undefined,
  steps: NO_STEPS,
};

export const createDelivery: Real["createDelivery"] = ({ requestId }, { now }) => {
  NONE.deliveryId = idLike("dlv", requestId, now);
  return NONE;
};
