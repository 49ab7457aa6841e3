import type { SomeConfig, TestGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";

export type Mappings = NonNullable<NonNullable<SomeConfig["webhooks"]>["mappings"]>;
export const withMappings = (mappings: Mappings, more: SomeConfig = {}): SomeConfig => ({
  ...more,
  webhooks: { mappings, ...more.webhooks },
});

/** What a turn came to, once it has ended. */
export const ended = async ({ rest }: TestGateway, { json }: Reply) => {
  const events = await (await rest.stream("turns.events", { path: { turn_id: String(json.turnId) } })).all();
  return events.at(-1)?.data.reply;
};

export type Step = { name: string; detail: Record<string, unknown> | null };
export const deliveryOf = async ({ console }: TestGateway, deliveryId: unknown) => {
  const { json } = await console.call("deliveries.get", { path: { delivery_id: String(deliveryId) } });
  return json as { outcome: string; status: number | null; mapping: string | null; timeline: Step[] };
};
export const stepOf = ({ timeline }: { timeline: Step[] }, name: string) =>
  timeline.find((step) => step.name === name)?.detail;
