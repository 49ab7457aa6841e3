import { describe, expect, it } from "vitest";
import { CODE_MS, createCodes, MOST_CODES } from "#core/codes.ts";
import { hashOf } from "#kit/secrets.ts";
import { SECRETS, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";

function redeem({ rest }: Pick<TestGateway, "rest">, key: string, headers?: Record<string, string>) {
  return rest.send("POST", "/api/v1/console/codes/redeem", { key, ...(headers && { headers }) });
}
async function codeOf({ rest }: Pick<TestGateway, "rest">, key: string): Promise<string> {
  return String((await rest.call("codes.create", { key })).json.code);
}

describe("a sign-in code", async () => {
  const gateway = await shareGateway();

  it("MUST return the token that created it, once", async () => {
    const made = await gateway.console.call("codes.create");
    expect(made).toMatchObject({ status: 201, json: { code: expect.stringMatching(/^[\w-]{43}$/) } });
    const code = String(made.json.code);
    const first = await redeem(gateway, code);
    expect([first.status, first.json]).toEqual([
      200,
      { name: "console", kind: "console", token: SECRETS.consoleToken },
    ]);
    expect(first.headers.get("cache-control")).toContain("no-store");
    expect(await redeem(gateway, code)).toMatchObject({ error: "unauthenticated" });
  });

  it("MUST name the key, and be refused to a key of scope chat", async () => {
    const { json } = await redeem(gateway, await codeOf(gateway, SECRETS.adminKey));
    expect(json).toMatchObject({ kind: "admin", token: SECRETS.adminKey });
    expect(await gateway.rest.call("codes.create", { key: SECRETS.key })).toMatchObject({ error: "forbidden" });
  });

  it("MUST work for one of many concurrent calls", async () => {
    const code = await codeOf(gateway, SECRETS.consoleToken);
    const all = await Promise.all(Array.from({ length: 20 }, () => redeem(gateway, code)));
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(all.filter(({ error }) => error === "unauthenticated")).toHaveLength(19);
  });

  it("MUST give access to nothing else, and a token cannot be redeemed", async () => {
    const code = await codeOf(gateway, SECRETS.consoleToken);
    expect(await gateway.rest.call("keys.list", { key: code })).toMatchObject({ error: "unauthenticated" });
    expect(await gateway.rest.call("codes.create", { key: code })).toMatchObject({ error: "unauthenticated" });
    expect(await redeem(gateway, SECRETS.consoleToken)).toMatchObject({ error: "unauthenticated" });
    expect((await redeem(gateway, code)).status).toBe(200);
  });

  it("MUST NOT be used by a page of another origin, or read over clear text", async () => {
    const code = await codeOf(gateway, SECRETS.consoleToken);
    const page = await redeem(gateway, code, { origin: "https://pages.example" });
    expect(page.error).toBe("origin-not-allowed");
    expect((await redeem(gateway, code)).status).toBe(200);
  });
});

it("MUST be absent from the log and from recorded requests", async () => {
  await using gateway = await startGateway();
  const code = await codeOf(gateway, SECRETS.consoleToken);
  await redeem(gateway, code);
  const { requestId } = await redeem(gateway, code);
  await gateway.logged("request", { requestId });
  const { json } = await gateway.console.call("deliveries.list", { query: { limit: "100" } });
  const found = json.deliveries as { delivery_id: string; request_id: string }[];
  const refused = found.find(({ request_id }) => request_id === requestId);
  const { text } = await gateway.console.call("deliveries.get", {
    path: { delivery_id: String(refused?.delivery_id) },
  });
  expect(text).toContain("/api/v1/console/codes/redeem");
  expect(text + JSON.stringify(found) + JSON.stringify(gateway.logs)).not.toContain(code);
});

it("MUST count wrong codes as guesses, and still accept the right one", async () => {
  await using gateway = await startGateway();
  const code = await codeOf(gateway, SECRETS.consoleToken);
  for (let n = 0; n < 20; n++) expect((await redeem(gateway, `wrong-${n}`)).headers.get("retry-after")).toBeNull();
  expect((await redeem(gateway, "wrong")).headers.get("retry-after")).toMatch(/^\d+$/);
  expect((await redeem(gateway, code)).status).toBe(200);
});

describe("a code whose key is no longer valid", () => {
  const keyed = (...keys: object[]) => ({ gateway: { rest: { auth: { keys } } } }) as never;

  it("MUST NOT be redeemed: after the key was revoked", async () => {
    await using gateway = await startGateway();
    const { json } = await gateway.console.call("keys.create", { body: { name: "desk", scopes: ["admin"] } });
    const code = await codeOf(gateway, String(json.key));
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
    const { status, error, problem } = await redeem(gateway, code);
    expect([status, error, problem.detail]).toEqual([
      401,
      "unauthenticated",
      expect.stringContaining("made this code"),
    ]);
  });

  it("MUST NOT be redeemed: after it expired", async () => {
    await using gateway = await startGateway();
    const expires_at = new Date(Date.now() + 1_500).toISOString();
    const body = { name: "desk", scopes: ["admin"], expires_at };
    const key = String((await gateway.console.call("keys.create", { body })).json.key);
    const code = await codeOf(gateway, key);
    while ((await gateway.rest.call("skills.list", { key })).status === 200)
      await new Promise((go) => setTimeout(go, 50));
    expect(await redeem(gateway, code)).toMatchObject({ status: 401, error: "unauthenticated" });
  });

  it("MUST NOT be redeemed: after a reload without the key, with fewer scopes, or with another console token", async () => {
    const [one, two] = ["a-key-of-the-configuration", "another-key-of-the-configuration"];
    const config = keyed({ name: "one", key: one, scopes: ["admin"] }, { name: "two", key: two, scopes: ["admin"] });
    await using gateway = await startGateway({ config });
    const codes = [await codeOf(gateway, one), await codeOf(gateway, two), await codeOf(gateway, SECRETS.consoleToken)];
    await gateway.reload({
      gateway: {
        rest: { auth: { keys: [{ name: "two", key: two, scopes: ["chat"] }] } },
        console: { token: "another-token-of-the-console" },
      },
    });
    for (const code of codes)
      expect(await redeem(gateway, code)).toMatchObject({ status: 401, error: "unauthenticated" });
  });
});

it("MUST be refused by a gateway that was restarted, with the reason", async () => {
  const first = await startGateway();
  const code = await codeOf(first, SECRETS.consoleToken);
  await first[Symbol.asyncDispose]();
  await using gateway = await startGateway();
  const { status, problem } = await redeem(gateway, code);
  expect([status, problem.detail]).toEqual([401, expect.stringContaining("until it restarts")]);
});

it("MUST NOT be created or redeemed while no listener has the console", async () => {
  await using gateway = await startGateway();
  const code = await codeOf(gateway, SECRETS.adminKey);
  await gateway.reload({ gateway: { console: { enabled: false } } });
  for (const { status, error, problem } of [
    await gateway.rest.send("POST", "/api/v1/console/codes", { key: SECRETS.adminKey }),
    await redeem(gateway, code),
  ])
    expect([status, error, problem.detail]).toEqual([404, "not-found", expect.stringContaining("`console` is off")]);
});

describe("unused codes", () => {
  const clock = { ms: 0, now: () => clock.ms, monotonic: () => clock.ms };
  const codes = () => createCodes({ clock: clock as never });
  const signIn = { name: "console", kind: "console", token: "the-token" } as const;

  it("MUST expire after a minute", () => {
    const made = codes();
    const { code, expiresAt } = made.create(signIn);
    expect(expiresAt).toBe(clock.ms + CODE_MS);
    clock.ms += CODE_MS - 1;
    expect(made.knows(hashOf(code))).toBe(true);
    clock.ms += 1;
    expect([made.knows(hashOf(code)), made.redeem(code)]).toEqual([false, undefined]);
  });

  it("MUST be limited in number: a new one replaces the oldest", () => {
    const made = codes();
    const all = Array.from({ length: MOST_CODES + 1 }, () => made.create(signIn).code);
    expect(all.map((code) => made.redeem(code)).map((found) => found?.token)).toEqual([
      undefined,
      ...Array.from({ length: MOST_CODES }, () => "the-token"),
    ]);
  });
});
