import { describe, expect, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createHooks } from "#test/harness/hooks.ts";
import { exchange } from "#test/harness/raw.ts";
import { senders } from "#test/harness/senders.ts";

const EVENT = { text: "hi" };
const NOWHERE = { nowhere: true } as const;
function start(config: SomeConfig) {
  return startGateway({ config });
}

describe("webhooks.path", () => {
  test.each(["/in", "/a/b/c", "/web.hooks_of~us", "/hooksy"])(
    "is the path where they are received: %s",
    async (path) => {
      await using gateway = await start({ webhooks: { path, mappings: { one: { match: {}, message: "hi" } } } });
      const client = createHooks(gateway.url, path);
      expect((await client.wake(EVENT)).status).toBe(200);
      expect((await client.agent({ message: "hi" })).status).toBe(200);
      expect((await client.mapped({})).json.mapping).toBe("one");
      expect((await client.named("one", {})).json.mapping).toBe("one");
      expect((await gateway.hooks.wake(EVENT, NOWHERE)).error).toBe("not-found");
    },
  );

  test("is in the served contract, and nothing else changes there", async () => {
    await using gateway = await start({ webhooks: { path: "/in" } });
    const { json } = await gateway.rest.send("GET", "/openapi.json");
    const paths = Object.keys(json.paths as object);
    expect(paths).toEqual(expect.arrayContaining(["/in", "/in/wake", "/in/agent", "/in/{name}"]));
    expect(paths.filter((path) => path.startsWith("/hooks"))).toEqual([]);
  });

  test("does not change before a restart, in the contract either", async () => {
    await using gateway = await start({ webhooks: { path: "/in" } });
    await gateway.reload({ webhooks: { path: "/out" } });
    expect((await createHooks(gateway.url, "/in").wake(EVENT)).status).toBe(200);
    expect((await createHooks(gateway.url, "/out").wake(EVENT, NOWHERE)).error).toBe("not-found");
    const { json } = await gateway.rest.send("GET", "/openapi.json");
    expect(Object.keys(json.paths as object)).toContain("/in/wake");
  });

  test("is compared exactly", async () => {
    await using gateway = await start({});
    const near = [
      "/hooksx",
      "/hook",
      "/hooks/wake/",
      "/hooks//wake",
      "/hooks/",
      "/Hooks/wake",
      "/hooks/wake/x",
      "/x/hooks/wake",
    ];
    for (const path of near) {
      const { error } = await createHooks(gateway.url, path).send("", EVENT, NOWHERE);
      expect([path, error]).toEqual([path, "not-found"]);
    }
  });
});

describe("webhooks that are off answer 404", () => {
  test.each<[string, SomeConfig["webhooks"]]>([
    ["without a secret", { token: undefined }],
    ["with enabled: false", { enabled: false }],
  ])("%s, as the start log says", async (_, webhooks) => {
    await using gateway = await start({ webhooks });
    for (const sending of [{}, { token: null }, { method: "GET" }])
      for (const below of ["/wake", "/agent", "", "/any"])
        expect((await gateway.hooks.send(below, EVENT, { ...sending, ...NOWHERE })).error).toBe("not-found");
    expect(gateway.linesOf("surface.off", { surface: "webhooks" })).toHaveLength(1);
  });

  test("also after a reload, and exist again after the next one", async () => {
    await using gateway = await start({});
    expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
    await gateway.reload({ webhooks: { enabled: false } });
    expect((await gateway.hooks.wake(EVENT, NOWHERE)).error).toBe("not-found");
    await gateway.reload({});
    expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
  });
});

test("a signed mapping enables webhooks: without a shared token only its path accepts requests", async () => {
  const secret = senders.github.makeSecret("first");
  const mappings = { signed: { match: {}, message: "hi", verify: { type: "github", secret } } } as const;
  await using gateway = await start({ webhooks: { token: undefined, mappings } });
  const headers = await senders.github.sign(secret, "{}");
  expect((await gateway.hooks.named("signed", "{}", { token: null, headers })).status).toBe(200);
  expect((await gateway.hooks.wake(EVENT)).error).toBe("unauthenticated");
  expect((await gateway.hooks.mapped({})).error).toBe("unauthenticated");
  expect((await gateway.hooks.named("unknown", {})).error).toBe("mapping-not-found");
});

describe("listeners", () => {
  test("may serve only webhooks, and others everything except webhooks", async () => {
    const listeners = [
      { port: 0, surfaces: ["rest", "rpc", "docs"] as ("rest" | "rpc" | "docs")[] },
      { port: 0, surfaces: ["webhooks"] as "webhooks"[] },
    ];
    await using gateway = await start({ gateway: { listeners } });
    const [inside, outside] = gateway.gateway.urls as [string, string];
    expect((await createHooks(outside).wake(EVENT)).status).toBe(200);
    expect((await createHooks(inside).wake(EVENT, NOWHERE)).error).toBe("not-found");
    for (const path of ["/api/v1/skills/list", "/rpc", "/openapi.json", "/metrics", "/docs"])
      expect((await createHooks(outside, path).send("", "", { method: "GET", ...NOWHERE })).status, path).toBe(404);
    expect((await exchange(outside, { method: "GET", path: "/healthz" })).status).toBe(200);
    expect((await exchange(inside, { method: "GET", path: "/openapi.json" })).status).toBe(200);
    expect(gateway.linesOf("listening").map(({ surfaces }) => surfaces)).toEqual([
      ["rest", "rpc", "docs"],
      ["webhooks"],
    ]);
  });
});

test("a method other than POST is 405 with Allow, for unauthenticated callers too, and its body is not read", async () => {
  await using gateway = await start({});
  for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
    for (const below of ["/wake", "/agent", "", "/any"]) {
      const { error, headers } = await gateway.hooks.send(below, "", { method, token: null });
      expect([error, headers.get("allow")]).toEqual(["method-not-allowed", "POST"]);
    }
  const { error } = await gateway.hooks.send("/wake", "x", {
    method: "PUT",
    headers: { "content-length": "99999999" },
  });
  expect(error).toBe("method-not-allowed");
});

test("the answer has the request's id in x-request-id, as the log has", async () => {
  await using gateway = await start({});
  const { requestId, json } = await gateway.hooks.agent({ message: "hi" });
  const line = await gateway.logged("request", { requestId });
  expect(line).toMatchObject({
    surface: "hooks",
    operation: "hooks.agent",
    status: 200,
    caller: "shared",
    turnId: json.turnId,
  });
  const wrong = await gateway.hooks.send("/x/y", {}, { token: SECRETS.key });
  expect(await gateway.logged("request", { requestId: wrong.requestId })).toMatchObject({
    surface: "hooks",
    operation: "unknown",
    error: "not-found",
  });
});
