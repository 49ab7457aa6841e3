import type { RestReplies } from "#generated/rest-handlers.ts";
import type { TestGateway } from "#test/harness/gateway.ts";

export type Summary = RestReplies["deliveries.list"]["deliveries"][number];
type Full = RestReplies["deliveries.get"];

/** Reads a gateway's flight recorder like the console. All answers are validated against the contract. */
export function recorderOf({ console }: Pick<TestGateway, "console">) {
  const page = async (query: Record<string, string> = {}) =>
    (await console.call("deliveries.list", { query })).json as unknown as RestReplies["deliveries.list"];
  const list = async (query: Record<string, string> = {}): Promise<Summary[]> => (await page(query)).deliveries;
  const get = async (delivery_id: string): Promise<Full> =>
    (await console.call("deliveries.get", { path: { delivery_id } })).json as unknown as Full;
  return {
    page,
    list,
    get,
    /** The newest matching one. */
    newest: async (query: Record<string, string> = {}): Promise<Summary> => {
      const [found] = await list({ ...query, limit: "1" });
      if (!found) throw new Error(`the recorder has nothing of ${JSON.stringify(query)}`);
      return found;
    },
    names: async (delivery_id: string): Promise<string[]> => (await get(delivery_id)).timeline.map(({ name }) => name),
    detailOf: async (delivery_id: string, step: string): Promise<Record<string, unknown>> =>
      (await get(delivery_id)).timeline.find(({ name }) => name === step)?.detail ?? {},
    replay: (delivery_id: string, key?: string) =>
      console.call("deliveries.replay", { path: { delivery_id }, ...(key !== undefined && { key }) }),
  };
}
