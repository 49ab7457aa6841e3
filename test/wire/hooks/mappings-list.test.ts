import { expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";

const push = { match: { "body.ref": "main", "body.token": "seen-nowhere", "body.n": 2 }, message: "{body.text}" };
const verify = { type: "github" as const, secret: "a-secret-of-a-sender" };
const agents = { main: { backend: "echo" as const }, side: { backend: "echo" as const } };
const mappings = { zulu: { ...push, agent: "side", verify }, alpha: { match: {}, message: "Hm." } };
const config = { gateway: { defaultAgent: "main" }, agents, webhooks: { path: "/in", mappings } };

test("mappings are listed in the order of the file, without their secrets", async () => {
  await using gateway = await startGateway({ config });
  const { json, text } = await gateway.rest.call("mappings.list", { key: gateway.adminKey });
  expect(json.mappings).toMatchObject([
    {
      name: "zulu",
      path: "/in/zulu",
      match: { "body.ref": ["main"], "body.token": ["[hidden]"], "body.n": ["2"] },
      message: "{body.text}",
      agent: "side",
      delivery: "none",
      announce_to: null,
      verify: "github",
    },
    { name: "alpha", match: {}, agent: "main", session: null, model: null, channel: null, verify: null },
  ]);
  expect(text).not.toMatch(/seen-nowhere|a-secret-of-a-sender/);
});

test("mappings are those of the latest reload, or none", async () => {
  await using gateway = await startGateway({ config });
  await gateway.reload({ ...config, webhooks: { path: "/in", mappings: {} } });
  expect((await gateway.console.call("mappings.list")).json).toEqual({ mappings: [], next_cursor: null });
});

test("a key without the scope admin is refused", async () => {
  await using gateway = await startGateway({ config });
  expect((await gateway.rest.call("mappings.list")).error).toBe("forbidden");
});
