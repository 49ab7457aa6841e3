import { expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { ended, type Mappings, withMappings } from "./mapped-payloads.ts";

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

it("a mapping that a reload adds is there as soon as the token that came with it", async () => {
  const names = Array.from({ length: 100 }, (_, n) => `skill-${n}`);
  const dirs = [skillsFolder(Object.fromEntries(names.map((name) => [name, skillText(name, "Does it.")])))];
  const config = (mappings: Mappings, token: string): SomeConfig => {
    const { webhooks, ...rest } = withMappings(mappings, { skills: { dirs } });
    return { ...rest, webhooks: { ...webhooks, token } };
  };
  await using gateway = await startGateway({ config: config({}, "the-old-webhook-token") });
  const reloading = gateway.reload(config({ late: { match: {}, message: "x" } }, "the-new-webhook-token"));
  let status = 401;
  while (status === 401) ({ status } = await gateway.hooks.named("late", {}, { token: "the-new-webhook-token" }));
  expect(status).toBe(200);
  await reloading;
});
