import { describe, expect, it } from "vitest";
import { gatherDiagnostics } from "#cli/diagnostics.ts";
import { diagnose } from "#cli/doctor.ts";
import { Gateway } from "#generated/clients/typescript/src/index.ts";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";
import { answer, startReceiver } from "../channels/receiver.ts";

const SECRET = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;

/** A call of the command line, with all tokens. */
function callTo({ url }: TestGateway) {
  const client = new Gateway({
    url,
    key: SECRETS.consoleToken,
    rpcToken: SECRETS.rpcToken,
    fetch: (target, init) => checkedFetch(new Request(target, init)),
  });
  const tokens = { key: SECRETS.consoleToken, rpcToken: SECRETS.rpcToken, webhookToken: undefined };
  const address = { url, ...tokens, credentials: { rest: [], rpc: [] }, unused: {}, origins: { url: "option" } };
  const options = { config: "/nowhere/gateway.json5" };
  return { gateway: client, address, options, signal: new AbortController().signal } as never;
}

async function doctorOf(gateway: TestGateway, id: string) {
  return (await diagnose(callTo(gateway))).filter((check) => check.id === id);
}

function endpoint(url: string) {
  return { url: `${url}/events`, secret: SECRET, events: ["turn.completed"] };
}

async function send({ rest }: TestGateway, message: string): Promise<number> {
  return (await rest.send("POST", "/api/v1/chat/send", { body: { message } })).status;
}

describe("an endpoint of notifications", () => {
  it("is reported by doctor if it fails or is stopped, with the command that tests it", async () => {
    await using gone = await startReceiver([answer(410)]);
    await using failing = await startReceiver([answer(503)]);
    await using good = await startReceiver([answer(204)]);
    const notify = { gone: endpoint(gone.url), failing: endpoint(failing.url), good: endpoint(good.url) };
    await using gateway = await startGateway({ config: { notify } });
    expect(await doctorOf(gateway, "notify")).toEqual([]);
    await send(gateway, "hello");
    await gateway.logged("notify.stopped", { endpoint: "gone" });
    await gateway.logged("notification.retried", { endpoint: "failing" });
    await gateway.logged("notification.delivered", { endpoint: "good" });
    // Health is read at most once in a moment.
    await expect.poll(() => doctorOf(gateway, "notify")).toHaveLength(2);
    expect(await doctorOf(gateway, "notify")).toMatchObject([
      {
        state: "warning",
        words: "gone: Stopped: the receiver answered 410 Gone. 1 notification is waiting.",
        next: expect.stringMatching(/agent-gateway notifications test gone$/),
      },
      {
        state: "warning",
        words: "failing: Last delivery failed: HTTP 503. 1 notification is waiting.",
        next: expect.stringMatching(/agent-gateway notifications test failing$/),
      },
    ]);
    const bundle = JSON.stringify(await gatherDiagnostics(callTo(gateway)));
    expect(bundle).toContain("notify.gone");
    expect(bundle).not.toContain(SECRET);
    // A removed endpoint fails its notifications.
    await gateway.reload({ notify: { good: notify.good } });
    await gateway.logged("notification.failed", { endpoint: "gone" });
    await gateway.logged("notification.failed", { endpoint: "failing" });
    await expect.poll(() => doctorOf(gateway, "notify")).toHaveLength(1);
    expect(await doctorOf(gateway, "notify")).toMatchObject([
      {
        words: expect.stringMatching(/^Some notifications failed, the latest for \w+$/),
        next: expect.stringMatching(/agent-gateway notifications list --state failed$/),
      },
    ]);
  });
});

describe("a budget", () => {
  it("is reported by doctor if it is spent or nearly spent, with the command that raises it", async () => {
    const config: SomeConfig = {
      budgets: {
        daily: { per: "day", tokens: 100, warnAt: 0.5 },
        // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
        cheap: { per: "month", tokens: 100_000, then: "pause" },
      },
    };
    await using gateway = await startGateway({ config });
    expect(await doctorOf(gateway, "budgets")).toMatchObject([{ state: "ok", words: "daily, cheap" }]);
    await send(gateway, "x".repeat(120)); // 30 tokens in, 30 out.
    expect(await doctorOf(gateway, "budgets")).toMatchObject([
      {
        state: "warning",
        words: expect.stringMatching(/^daily is nearly spent: 60 % of its tokens, resets at \d{4}-/),
        next: expect.stringMatching(/agent-gateway budgets$/),
      },
    ]);
    await send(gateway, "x".repeat(120));
    expect(await send(gateway, "hello")).toBe(429);
    expect(await doctorOf(gateway, "budgets")).toMatchObject([
      {
        state: "warning",
        words: expect.stringMatching(/^daily is spent \(120 % of its tokens\): turns are refused until \d{4}-/),
        next: expect.stringMatching(/agent-gateway budgets grant daily --tokens N$/),
      },
    ]);
    expect(await gatherDiagnostics(callTo(gateway))).toMatchObject({
      budgets: { budgets: [{ name: "daily", state: "exceeded" }, { name: "cheap" }] },
      health: { status: "ok" },
    });
  });
});

describe("a schedule", () => {
  const yearly = { cron: "0 0 1 1 *", message: "hi" } as const;

  it("is reported by doctor if it is paused, with the command that resumes it", async () => {
    await using gateway = await startGateway({ config: { schedules: { brief: yearly, other: yearly } } });
    expect(await doctorOf(gateway, "schedules")).toMatchObject([{ state: "ok", words: "brief, other" }]);
    await gateway.console.call("schedules.pause", { path: { schedule_name: "brief" } });
    expect(await doctorOf(gateway, "schedules")).toMatchObject([
      {
        state: "warning",
        words: expect.stringMatching(/^brief has been paused since \d{4}-/),
        next: expect.stringMatching(/agent-gateway schedules resume brief$/),
      },
    ]);
    expect(await gatherDiagnostics(callTo(gateway))).toMatchObject({
      schedules: { schedules: [{ name: "brief", state: "paused" }, { name: "other" }] },
    });
  });

  it("is reported by doctor if its last run started no turn, with the reason", async () => {
    const config: SomeConfig = {
      agents: { main: { backend: "echo" } },
      budgets: { tiny: { per: "day", tokens: 1 } },
      schedules: { often: { every: "1s", message: "hi" } },
    };
    await using gateway = await startGateway({ config });
    await gateway.logged("schedule.ran", { outcome: "skipped" });
    expect(await doctorOf(gateway, "schedules")).toMatchObject([
      {
        state: "warning",
        words: expect.stringMatching(/^often started no turn at \d{4}-.*: budget-exceeded: /),
        next: expect.stringMatching(/agent-gateway deliveries show dlv_\w+$/),
      },
    ]);
  });
});

describe("the MCP server", () => {
  it("is reported by doctor with the number of its tools, while it is on", async () => {
    await using off = await startGateway();
    expect(await doctorOf(off, "mcp")).toEqual([]);
    await using on = await startGateway({ config: { gateway: { mcp: { enabled: true } } } });
    expect(await doctorOf(on, "mcp")).toEqual([
      { id: "mcp", state: "ok", words: `the key has 2 tools at ${on.url}/mcp` },
    ]);
  });
});
