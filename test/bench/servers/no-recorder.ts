// Stands in for store/rules/deliveries.ts in servers/unrecorded.ts.

type Real = typeof import("#store/rules/deliveries.ts");

const nothing = () => undefined;

export const keepDelivery: Real["keepDelivery"] = nothing;
export const recordDelivery: Real["recordDelivery"] = nothing;
export const endDelivery: Real["endDelivery"] = nothing;
export const addDeliveryStep: Real["addDeliveryStep"] = nothing;
export const eraseContent: Real["eraseContent"] = nothing;
export const getDelivery: Real["getDelivery"] = nothing;
// biome-ignore lint/correctness/useYield: there is nothing to look through.
export const listDeliveries: Real["listDeliveries"] = function* () {
  return { items: [], next: undefined };
};
