import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { createRpc } from "#test/harness/rpc.ts";

const DRAFT = { name: "incident", match: { "body.status": "firing" }, message: "{body.title}" };
const CONFIG: SomeConfig = {
  webhooks: {
    mappings: {
      any: { match: { "headers.x-any": "yes" }, message: "Any" },
      signed: { match: {}, message: "Signed", verify: { type: "github", secret: "a-secret-of-a-sender" } },
    },
  },
};

type Row = Record<string, unknown> & { failed: unknown };
async function backtest({ console }: TestGateway, fields: object = {}) {
  const { status, error, json } = await console.call("mappings.backtest", { body: { mapping: DRAFT, ...fields } });
  return { status, error, json, rows: json.deliveries as Row[] };
}

/** Resolves once the webhooks are recorded: a refused one is answered before. */
async function recorded({ gateway: { store } }: TestGateway, webhooks: number): Promise<void> {
  for (;;) {
    const { items } = await store.listDeliveries({ surface: "hooks", limit: 100 });
    if (items.length === webhooks) return;
  }
}

/** Tests that depend on the engine: the order of the list, erased bodies, and reads. */
function storeTests(start: () => Promise<TestGateway>): void {
  it("tries the draft on the newest recorded webhooks, newest first", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", { status: "firing", title: "Disk full" });
    await gateway.hooks.named("any", { status: "resolved" }, { headers: { "x-any": "yes" } });
    await gateway.hooks.agent({ message: "hi" });
    await recorded(gateway, 3);
    await gateway.rest.call("chat.send", { body: { message: "hi" } });
    const { json, rows } = await backtest(gateway);
    expect(json).toMatchObject({ tried: 3, matched: 1, skipped: 0 });
    expect(rows).toEqual([
      expect.objectContaining({ path: "/hooks/agent", matched: false }),
      expect.objectContaining({
        path: "/hooks/any",
        caller: "shared",
        failed: { path: "body.status", expected: ["firing"], found: "resolved" },
        message: null,
      }),
      {
        delivery_id: expect.stringMatching(/^dlv_/),
        at: expect.stringMatching(/Z$/),
        path: "/hooks",
        caller: "shared",
        matched: true,
        failed: null,
        message: "Disk full",
        session_id: null,
        group_key: null,
      },
    ]);
    const places = { session: "webhook:incident-{body.id|body.title}", coalesce: { key: "{body.title}!" } };
    expect((await backtest(gateway, { mapping: { ...DRAFT, ...places } })).rows).toMatchObject([
      { session_id: null, group_key: null },
      { session_id: null, group_key: null },
      { session_id: "webhook:incident-Disk~20full", group_key: "Disk full!" },
    ]);
    const { json: one } = await gateway.console.call("deliveries.get", {
      path: { delivery_id: String(rows[2]?.delivery_id) },
    });
    expect(one.path).toBe("/hooks");
    expect((await backtest(gateway, { limit: 1 })).json).toMatchObject({ tried: 1, matched: 0 });
  });

  it("skips a body that was erased with its session", async () => {
    await using gateway = await start();
    const { json: sent } = await gateway.hooks.send("", { status: "firing" }, { headers: { "x-any": "yes" } });
    while ((await gateway.gateway.store.getTurn(String(sent.turnId)))?.status !== "completed")
      await new Promise(setImmediate);
    await createRpc(gateway.url).call("session.delete", { sessionId: sent.sessionId });
    expect((await backtest(gateway)).json).toMatchObject({ tried: 0, skipped: 1, deliveries: [] });
  });

  it("tries up to fifty large bodies, and answers other calls meanwhile", async () => {
    await using gateway = await start();
    const title = "x".repeat(200_000);
    for (let n = 0; n < 52; n++) await gateway.hooks.send("", { n, status: "firing", title });
    await recorded(gateway, 52);
    let ended = false;
    const done = backtest(gateway).finally(() => {
      ended = true;
    });
    let others = 0;
    while (!ended) {
      await gateway.console.call("mappings.list");
      if (!ended) others++;
    }
    const { json, rows } = await done;
    expect(json).toMatchObject({ tried: 50, matched: 50 });
    expect(rows.every(({ message }) => message === "x".repeat(1000))).toBe(true);
    expect(others).toBeGreaterThan(0);
  });
}

describe("a back-test in memory", () => {
  const start = () => startGateway({ config: CONFIG });
  storeTests(start);

  it("matches recorded headers", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", { status: "firing" }, { headers: { "x-any": "yes" } });
    await recorded(gateway, 1);
    const mapping = { ...DRAFT, match: { "headers.X-Any": "yes" }, message: "{headers.x-any}" };
    expect((await backtest(gateway, { mapping })).rows).toMatchObject([{ matched: true, message: "yes" }]);
  });

  it("skips requests without a body, of strangers too, and counts them", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", { status: "firing", title: "old" });
    await gateway.hooks.send("", { status: "firing" }, { token: null });
    await gateway.hooks.send("", { status: "firing" }, { token: "wrong-token-of-the-tests" });
    await gateway.hooks.send("", "not JSON");
    await gateway.hooks.send("", '"a text"');
    await gateway.hooks.send("", new Uint8Array([0x7b, 0xff, 0x7d]));
    await recorded(gateway, 6);
    const { json } = await backtest(gateway);
    expect(json).toMatchObject({ tried: 1, matched: 1, skipped: 5 });
  });

  it("shows no value of a field that is named like a secret, and matches none", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", { status: "firing", password: "sekrit-1", list: [{ password: "sekrit-2" }] });
    await recorded(gateway, 1);
    const mapping = { ...DRAFT, message: "{body.password} {body.list}" };
    const { json } = await backtest(gateway, { mapping });
    expect(JSON.stringify(json)).not.toContain("sekrit");
    expect(json).toMatchObject({ matched: 1 });
    const guess = { ...DRAFT, match: { "body.password": "sekrit-1" } };
    const { rows } = await backtest(gateway, { mapping: guess });
    expect(rows).toMatchObject([
      { matched: false, failed: { path: "body.password", expected: ["[hidden]"], found: "[hidden]" } },
    ]);
  });

  it("survives hostile bodies, and shows the beginning of a long message", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", '{"__proto__":{"status":"firing"},"constructor":{"status":"firing"}}');
    await gateway.hooks.send("", `{"status":"firing","title":${"[".repeat(200)}${"]".repeat(200)}}`);
    await gateway.hooks.send("", { status: "firing", title: `${"x".repeat(999)}😀` });
    await gateway.hooks.send("", { status: "firing", title: "‮gnp.exe" });
    await gateway.hooks.send("", { status: "firing", title: "" });
    await recorded(gateway, 5);
    const { status, rows, json } = await backtest(gateway);
    expect([status, json.tried, json.skipped]).toEqual([200, 4, 1]);
    expect(rows).toMatchObject([
      { matched: false, failed: { path: "message", expected: ["some text"] } },
      { message: "‮gnp.exe" },
      { message: "x".repeat(999) },
      { matched: false, failed: { path: "body.status", found: null } },
    ]);
  });

  it("answers with a few short values, however many and long those of the draft are", async () => {
    await using gateway = await start();
    for (let n = 0; n < 3; n++) await gateway.hooks.send("", { status: "x".repeat(5000) });
    await recorded(gateway, 3);
    const values = Array.from({ length: 100 }, (_, n) => `${n} ${"v".repeat(1000)}`);
    const { rows } = await backtest(gateway, { mapping: { ...DRAFT, match: { "body.status": values } } });
    const expected = values.slice(0, 5).map((value) => `${value.slice(0, 199)}…`);
    const failed = { path: "body.status", expected, found: `${"x".repeat(199)}…` };
    expect(rows.map((row) => row.failed)).toEqual([failed, failed, failed]);
    for (const value of ["v".repeat(1025), ["v".repeat(1025)]])
      expect((await backtest(gateway, { mapping: { ...DRAFT, match: { "body.status": value } } })).error).toBe(
        "invalid-request",
      );
  });

  it("logs no unexpected error when its caller disconnects", async () => {
    await using gateway = await start();
    for (let n = 0; n < 52; n++) await gateway.hooks.send("", { n, status: "firing", title: "x".repeat(200_000) });
    await recorded(gateway, 52);
    const headers = { authorization: `Bearer ${SECRETS.consoleToken}`, "content-type": "application/json" };
    const caller = request(`${gateway.url}/api/v1/mappings/backtest`, { method: "POST", headers });
    caller.on("error", () => {});
    caller.end(JSON.stringify({ mapping: DRAFT }), () => caller.destroy());
    await gateway.logged("request", { operation: "mappings.backtest", status: 499 });
    await gateway.console.call("mappings.list");
    expect(gateway.linesOf("unexpected.error")).toEqual([]);
  });

  it("starts nothing and records nothing", async () => {
    await using gateway = await start();
    await gateway.hooks.send("", { status: "firing", title: "Disk full" });
    await recorded(gateway, 1);
    const records = async () => {
      const [deliveries, turns] = await Promise.all([
        gateway.console.call("deliveries.list"),
        gateway.console.call("turns.list"),
      ]);
      return [deliveries.json, turns.json];
    };
    const before = await records();
    await backtest(gateway);
    expect(await records()).toEqual(before);
  });

  it("refuses a draft that the configuration would refuse, and a limit over fifty", async () => {
    await using gateway = await start();
    const faulty = await backtest(gateway, { mapping: { ...DRAFT, agent: "mian" } });
    expect([faulty.status, faulty.json.detail]).toEqual([
      400,
      "webhooks.mappings.incident.agent names an agent that is not configured; did you mean `main`?",
    ]);
    for (const limit of [0, 51, 1.5, "50"]) expect((await backtest(gateway, { limit })).error).toBe("invalid-request");
  });
});

describe("a back-test with recorder.bodies: false", () => {
  it("tries nothing", async () => {
    await using gateway = await startGateway({ config: { ...CONFIG, recorder: { bodies: false } } });
    await gateway.hooks.send("", { status: "firing" });
    await recorded(gateway, 1);
    expect((await backtest(gateway)).json).toMatchObject({ tried: 0, matched: 0, skipped: 1 });
  });
});

describe("a back-test on SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gateway-backtest-"));
  afterAll(() => rm(folder, { recursive: true }));
  let files = 0;
  storeTests(() => {
    const store = { type: "sqlite", path: join(folder, `${++files}.db`) } as const;
    return startGateway({ config: { ...CONFIG, store } });
  });
});

describe("a back-test on PostgreSQL", async () => {
  await postgresTests((server) => {
    storeTests(async () => {
      const url = await server.createSchema();
      return startGateway({ config: { ...CONFIG, store: { type: "postgres", url } } });
    });
  });
});
