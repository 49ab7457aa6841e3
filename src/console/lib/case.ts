import type { DeliverySummary } from "#generated/clients/typescript/src/rest-types.ts";

/** The names of an object's own fields as REST writes them, of one as RPC writes them. */
function camelToSnake(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name.replace(/[A-Z]/g, (sign) => `_${sign.toLowerCase()}`), inner]),
  );
}

/** The delivery in a push, in the form of the REST list; undefined if the push has none. */
export function deliveryIn({ method, params }: { method: string; params: object }): DeliverySummary | undefined {
  if (method !== "delivery.recorded" && method !== "delivery.changed") return undefined;
  return camelToSnake((params as { delivery: object }).delivery) as unknown as DeliverySummary;
}
