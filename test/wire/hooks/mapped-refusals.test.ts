import { expect, it } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { withMappings } from "./mapped-payloads.ts";

it("a message that would be too long is refused, and can be seen", async () => {
  await using gateway = await startGateway({
    config: withMappings({ long: { match: {}, message: "{body.text}".repeat(5) } }),
  });
  const fits = await gateway.hooks.named("long", { text: "x".repeat(200_000) });
  expect(fits.status).toBe(200);
  const reply = await gateway.hooks.named("long", { text: "x".repeat(250_000) });
  expect([reply.status, reply.error, reply.problem.detail]).toEqual([
    413,
    "too-large",
    "The message of the mapping long has more than 1048576 characters.",
  ]);
  const { json } = await gateway.console.call("deliveries.list", { query: { outcome: "refused" } });
  expect(json.deliveries).toMatchObject([{ status: 413, mapping: "long" }]);
});

it("a session that holds too many turns refuses the next, and nothing is kept of it", async () => {
  const { backend, next } = createPuppet();
  await using gateway = await startGateway({
    makeBackend: () => backend,
    config: withMappings(
      { ci: { match: {}, message: "x", session: "webhook:ci" } },
      { limits: { turnsPerSession: 2 } },
    ),
  });
  const replies = [];
  // One runs, and two wait.
  for (let n = 0; n < 4; n++) replies.push(await gateway.hooks.named("ci", {}));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(replies[3]?.error).toBe("session-busy");
  expect(replies[3]?.headers.get("retry-after")).toMatch(/^\d+$/);
  for (let n = 0; n < 3; n++) (await next()).end();
});
