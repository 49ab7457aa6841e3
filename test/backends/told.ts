import type { TestGateway } from "#test/harness/gateway.ts";

type Told = Pick<TestGateway, "rest" | "adminKey">;
type Step = { name: string; detail: Record<string, unknown> | null };

/** A turn in the API of a gateway. */
export async function turnIn({ rest }: Told, turnId: unknown) {
  return (await rest.call("turns.get", { path: { turn_id: String(turnId) } })).json as Record<string, unknown>;
}

/** The details of the steps of one name on a turn's timeline. */
export async function stepsIn(gateway: Told, turnId: unknown, name: string) {
  const path = { delivery_id: String((await turnIn(gateway, turnId)).delivery_id) };
  const { json } = await gateway.rest.call("deliveries.get", { path, key: gateway.adminKey });
  return (json.timeline as Step[]).flatMap((step) => (step.name === name ? [step.detail] : []));
}
