import { describe, expect, test } from "vitest";
import { parseJson } from "#config/parse-json.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";

const gateway = await shareGateway();
type Key = { key_id: string; name: string; key: string; prefix: string; last_used_at: string | null; source: string };
async function mint(name: string, scopes?: string[]): Promise<Key> {
  return (await gateway.console.call("keys.create", { body: { name, ...(scopes && { scopes }) } })).json as Key;
}
async function listed(): Promise<Key[]> {
  return (await gateway.console.call("keys.list")).json.keys as Key[];
}
function chat(key: string) {
  return gateway.rest.call("chat.send", { key, body: { message: "hi" } });
}

describe("keys", () => {
  test("that are created work at once, are shown once, and are listed without their secret", async () => {
    const { key, key_id, prefix } = await mint("support desk");
    expect(key.startsWith(prefix)).toBe(true);
    expect((await chat(key)).status).toBe(200);
    const found = (await listed()).find((one) => one.key_id === key_id);
    expect(found).toMatchObject({ name: "support desk", prefix, source: "console", scopes: ["chat"] });
    expect(found?.last_used_at).toMatch(/Z$/);
    expect(JSON.stringify(await listed())).not.toContain(key);
  });

  test("have names without control characters", async () => {
    for (const name of ["a\nb", "\u001b[31mred", "\u009b2J", "gpj.\u202eexe", "\u0000"]) {
      const { status, json } = await gateway.console.call("keys.create", { body: { name } });
      expect([status, json.errors]).toEqual([
        400,
        [{ pointer: "/name", message: "must not contain control characters" }],
      ]);
    }
  });

  test("that are created can be stored by a line of the configuration", async () => {
    const body = { name: 'quotes " and \\ and }', scopes: ["admin", "chat"] };
    const { json } = await gateway.console.call("keys.create", { body });
    const [, hash] = /key: "(sha256:[0-9a-f]{64})"/.exec(String(json.config_line)) ?? [];
    const keys = [{ name: "kept", key: String(hash) }];
    await using restarted = await startGateway({ config: { gateway: { rest: { auth: { keys } } } } });
    expect((await restarted.rest.call("skills.list", { key: String(json.key) })).status).toBe(200);
  });

  test("with limits show them, and are kept with them by a line of the configuration", async () => {
    const rate_limit = { limit: 7, window_ms: 30_000 };
    const body = { name: "widget", agents: ["main"], rate_limit, expires_at: "2035-01-31T00:00:00.000Z" };
    const { json } = await gateway.console.call("keys.create", { body });
    expect(json).toMatchObject({ agents: ["main"], rate_limit });
    expect((await listed()).find(({ key_id }) => key_id === json.key_id)).toMatchObject({
      agents: ["main"],
      rate_limit,
    });
    expect(json.config_line).toMatch(
      /, scopes: \["chat"\], expiresAt: "2035-01-31T00:00:00\.000Z", agents: \["main"\], rateLimit: \{ maxRequests: 7, windowMs: 30000 \} \}$/,
    );
    const keys = [parseJson("line.json5", String(json.config_line)).value] as never;
    const agents = { main: { backend: "echo" as const }, other: { backend: "echo" as const } };
    const config = { agents, gateway: { defaultAgent: "main", rest: { auth: { keys } } } };
    await using restarted = await startGateway({ config });
    const asked = { key: String(json.key), body: { message: "hi", agent: "other" } };
    expect((await restarted.rest.call("chat.send", asked)).error).toBe("forbidden");
    const { json: shown } = await restarted.rest.call("identity.get", { key: String(json.key) });
    expect(shown).toMatchObject({ name: "widget", agents: ["main"], rate_limit });
  });

  test.each([
    [{ agents: ["mian"] }, "/agents/0", "names an agent that is not configured. Did you mean `main`?"],
    [{ agents: ["main", "zz"] }, "/agents/1", "names an agent that is not configured. There is `main`."],
    [{ agents: ["main"], scopes: ["admin"] }, "/agents", "is only for keys whose only scope is chat"],
    [{ agents: ["main"], scopes: ["chat", "admin"] }, "/agents", "is only for keys whose only scope is chat"],
    [{ agents: [] }, "/agents", "must"],
    [{ agents: ["main", "main"] }, "/agents", "must"],
    [{ agents: "main" }, "/agents", "must"],
    [{ rate_limit: { limit: 0, window_ms: 1 } }, "/rate_limit/limit", "must"],
    [{ rate_limit: { limit: 1.5, window_ms: 1 } }, "/rate_limit/limit", "must"],
    [{ rate_limit: { limit: 1 } }, "/rate_limit/window_ms", "is required"],
    [{ rate_limit: { limit: 1, window_ms: 86_400_001 } }, "/rate_limit/window_ms", "must"],
    [{ rate_limit: { limit: 1, window_ms: 1, burst: 5 } }, "/rate_limit/burst", "is"],
  ])("MUST NOT be made with the limits %j", async (limits, pointer, message) => {
    const before = (await listed()).length;
    const { error, problem } = await gateway.console.call("keys.create", { body: { name: "refused", ...limits } });
    expect([error, problem.errors?.[0]?.pointer]).toEqual(["invalid-request", pointer]);
    expect(problem.errors?.[0]?.message).toContain(message);
    expect(await listed()).toHaveLength(before);
  });

  test("that have no limits have null, which a request may also say", async () => {
    const body = { name: "plain", agents: null, rate_limit: null };
    for (const one of [body, { name: "plainer" }])
      expect((await gateway.console.call("keys.create", { body: one })).json).toMatchObject({
        agents: null,
        rate_limit: null,
      });
  });

  test("that are revoked are unknown from then on, as are unknown ids", async () => {
    const { key, key_id } = await mint("soon gone");
    expect((await gateway.console.call("keys.revoke", { path: { key_id } })).status).toBe(204);
    expect((await chat(key)).error).toBe("unauthenticated");
    expect((await gateway.console.call("keys.revoke", { path: { key_id } })).error).toBe("key-not-found");
    expect((await listed()).some((one) => one.key_id === key_id)).toBe(false);
  });

  test("that are created with the scope admin cannot create keys either", async () => {
    const { key } = await mint("operator", ["admin"]);
    expect((await gateway.rest.call("keys.create", { key, body: { name: "mine" } })).error).toBe("forbidden");
    expect((await chat(key)).status).toBe(200);
  });

  test("are listed in pages with each key once, the configuration's first, then the newest", async () => {
    const minted = [];
    for (let n = 0; n < 5; n++) minted.unshift((await mint(`page ${n}`)).key_id);
    const paged: Key[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { json } = await gateway.console.call("keys.list", { query: { limit: "2", ...(cursor && { cursor }) } });
      expect((json.keys as Key[]).length).toBeLessThanOrEqual(2);
      paged.push(...(json.keys as Key[]));
      cursor = json.next_cursor as string | null;
    }
    const whole = await listed();
    expect(paged.map(({ name }) => name)).toEqual(whole.map(({ name }) => name));
    expect(paged.slice(0, 2).map(({ source }) => source)).toEqual(["config", "config"]);
    expect(paged.slice(2, 7).map(({ key_id }) => key_id)).toEqual(minted);
  });

  test.each(["bm9uc2Vuc2U", "%00", "x".repeat(512)])("have no page for the cursor %s", async (cursor) => {
    const reply = await gateway.console.call("keys.list", { query: { cursor } });
    expect([reply.error, reply.problem.errors?.[0]?.pointer]).toEqual(["invalid-request", "query:cursor"]);
  });
});
