import { expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { deliveryOf, ended, type Mappings, stepOf, withMappings } from "./mapped-payloads.ts";

it("what was found in a body is not recorded where bodies are not", async () => {
  await using gateway = await startGateway({
    config: withMappings({ ci: { match: { "body.v": "1" }, message: "x" } }, { recorder: { bodies: false } }),
  });
  const { json } = await gateway.hooks.named("ci", { v: "private" });
  const delivery = await deliveryOf(gateway, json.deliveryId);
  expect(stepOf(delivery, "mapping.tried")).toMatchObject({
    tried: [{ mapping: "ci", path: "body.v", expected: ["1"] }],
  });
  expect(JSON.stringify(delivery)).not.toContain("private");
});

it("a reload takes over mappings with the agents that they name, and refuses those that cannot be", async () => {
  const config = (mappings: Mappings, names: string[]): SomeConfig =>
    withMappings(mappings, {
      agents: Object.fromEntries(names.map((name) => [name, { backend: "echo" }])),
      gateway: { defaultAgent: "main" },
    });
  await using gateway = await startGateway({ config: config({ one: { match: {}, message: "first" } }, ["main"]) });
  expect((await gateway.hooks.named("one", {})).json).toMatchObject({ agent: "main" });
  await expect(gateway.reload(config({ one: { match: {}, message: "{foo}" } }, ["main"]))).rejects.toThrow(
    "webhooks.mappings.one.message holds `{foo}`",
  );
  expect((await gateway.hooks.named("one", {})).status).toBe(200);
  await gateway.reload(config({ two: { match: {}, message: "second", agent: "late" } }, ["main", "late"]));
  await gateway.logged("config.reloaded");
  const reply = await gateway.hooks.mapped({});
  expect(reply.json).toMatchObject({ mapping: "two", agent: "late" });
  expect(await ended(gateway, reply)).toBe("second");
  expect((await gateway.hooks.named("one", {})).status).toBe(404);
});
