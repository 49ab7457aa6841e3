import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { openSocket } from "../ws/socket.ts";

type Schedules = NonNullable<SomeConfig["schedules"]>;
type Last = { outcome: string; turn_id: string; turn_status: string; delivery_id: string; requested_by: string | null };
type Shown = { name: string; state: string; next: string[]; last: Last | null };

const brief = { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", message: "Write the brief of the day." } as const;
const agents = { main: { backend: "echo" }, other: { backend: "echo" } } as const;

function start(schedules: Schedules, more: SomeConfig = {}, options: Parameters<typeof startGateway>[0] = {}) {
  return startGateway({
    ...options,
    config: { agents, schedules, ...more, gateway: { defaultAgent: "main", ...more.gateway } },
  });
}
async function list({ console }: TestGateway): Promise<Shown[]> {
  return (await console.call("schedules.list")).json.schedules as Shown[];
}
type Change = { key?: string; idempotencyKey?: string };
function run({ console }: TestGateway, schedule_name = "brief", { key, idempotencyKey }: Change = {}) {
  return console.call("schedules.run", {
    path: { schedule_name },
    ...(key !== undefined && { key }),
    ...(idempotencyKey !== undefined && { headers: { "idempotency-key": idempotencyKey } }),
  });
}
function pause({ console }: TestGateway, schedule_name = "brief") {
  return console.call("schedules.pause", { path: { schedule_name } });
}
function resume({ console }: TestGateway, schedule_name = "brief") {
  return console.call("schedules.resume", { path: { schedule_name } });
}
async function turnOf({ console }: TestGateway, { json }: Awaited<ReturnType<typeof run>>) {
  const read = async () => (await console.call("turns.get", { path: { turn_id: String(json.turn_id) } })).json;
  await expect.poll(async () => (await read()).ended_at).not.toBeNull();
  return read();
}

describe("schedules.list", () => {
  test("shows the schedules in the order of the configuration, with their next five times", async () => {
    const skills = { dirs: [skillsFolder(SUMMARISE)] };
    await using gateway = await start(
      {
        inbox: {
          every: "15m",
          agent: "other",
          skill: "summarise-thread",
          params: {
            last_days: 2,
            camelCase: [1],
            api_token: "a-literal",
            note: "by VARIABLE-1234",
            inner: { password: ["b-literal", 3] },
          },
          session: "schedule:inbox",
          model: "fast",
          channel: "desk",
          missed: "once",
          missedWithin: "2h",
          overlap: "queue",
        },
        brief,
      },
      { skills },
      { hidden: ["VARIABLE-1234"] },
    );
    const [inbox, second] = await list(gateway);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(inbox).toEqual({
      name: "inbox",
      cron: null,
      every: "15m",
      time_zone: "UTC",
      agent: "other",
      message: null,
      skill_id: "summarise-thread",
      params: {
        last_days: 2,
        camelCase: [1],
        api_token: "[hidden]",
        note: "by [hidden]",
        inner: { password: ["[hidden]", 3] },
      },
      session_id: "schedule:inbox",
      model: "fast",
      channel: "desk",
      delivery: "none",
      missed: "once",
      missed_within: "2h",
      overlap: "queue",
      state: "active",
      paused_at: null,
      next: [time, time, time, time, time],
      last: null,
    });
    expect(second).toMatchObject({
      name: "brief",
      cron: brief.cron,
      every: null,
      time_zone: "Europe/Berlin",
      agent: "main",
      message: brief.message,
      skill_id: null,
      params: null,
      session_id: null,
      missed: "skip",
      missed_within: "1h",
      overlap: "skip",
    });
    const hours = second?.next.map((time) => new Date(time).toLocaleTimeString("en", { timeZone: "Europe/Berlin" }));
    expect(hours).toEqual(Array(5).fill("9:00:00 AM"));
    expect(second?.next.toSorted()).toEqual(second?.next);
  });

  test("is empty without schedules", async () => {
    await using gateway = await startGateway();
    expect((await gateway.console.call("schedules.list")).json).toEqual({ schedules: [], next_cursor: null });
  });

  test("MUST show a token with limited agents only the schedules of its agents", async () => {
    const token = "a-token-for-the-agent-other";
    const tokens = [
      { name: "narrow", token, permissions: "*" as const, agents: ["other"] },
      { name: "ops", token: SECRETS.rpcToken, permissions: "*" as const },
    ];
    const gatewayKeys = { rpc: { auth: { tokens } } } as SomeConfig["gateway"];
    await using gateway = await start({ brief, mine: { ...brief, agent: "other" } }, { gateway: gatewayKeys });
    const seenBy = async (token: string) => {
      const { result } = await createRpc(gateway.url, token).call("schedule.list");
      return (result as { schedules: { name: string }[] }).schedules.map(({ name }) => name);
    };
    expect(await seenBy(token)).toEqual(["mine"]);
    expect(await seenBy(SECRETS.rpcToken)).toEqual(["brief", "mine"]);
  });

  test("follows a reload of the configuration", async () => {
    await using gateway = await start({ brief });
    await gateway.reload({
      agents,
      schedules: { hourly: { every: "1h", message: "hi" } },
      gateway: { defaultAgent: "main" },
    });
    expect((await list(gateway)).map(({ name }) => name)).toEqual(["hourly"]);
    expect((await run(gateway)).error).toBe("schedule-not-found");
  });
});

describe("schedules.run", () => {
  test("starts a turn with the message, in a new session of the schedule, and is the last run", async () => {
    await using gateway = await start({ brief });
    const before = await list(gateway);
    const ran = await run(gateway);
    expect(ran.json).toEqual({
      schedule: "brief",
      turn_id: expect.stringMatching(/^turn_/),
      session_id: expect.stringMatching(/^schedule:/),
      delivery_id: expect.stringMatching(/^dlv_/),
      agent: "main",
    });
    const turn = await turnOf(gateway, ran);
    expect(turn).toMatchObject({ surface: "schedule", caller: "brief", status: "completed", reply: brief.message });
    const [after] = await list(gateway);
    expect(after).toMatchObject({
      next: before[0]?.next,
      last: {
        outcome: "started",
        turn_id: ran.json.turn_id,
        turn_status: "completed",
        delivery_id: ran.json.delivery_id,
        reason: null,
        requested_by: "console",
      },
    });
    expect((await run(gateway)).json.session_id).not.toBe(ran.json.session_id);
  });

  test("is a delivery of the surface schedule, with the name of the caller", async () => {
    await using gateway = await start({ brief });
    const { json } = await run(gateway, "brief", { key: SECRETS.adminKey });
    const path = { delivery_id: String(json.delivery_id) };
    const { json: delivery } = await gateway.console.call("deliveries.get", { path });
    expect(delivery).toMatchObject({ surface: "schedule", caller: "brief", turn_id: json.turn_id, agent: "main" });
    const steps = delivery.timeline as { name: string; detail: object }[];
    expect(steps.find(({ name }) => name === "schedule.requested")?.detail).toMatchObject({ by: "admin" });
    expect((await list(gateway))[0]?.last?.requested_by).toBe("admin");
  });

  test("triggers the skill of the schedule with its params", async () => {
    const skills = { dirs: [skillsFolder(SUMMARISE)] };
    const report = { every: "1h", skill: "summarise-thread", params: { length: "short" } };
    await using gateway = await start({ report }, { skills });
    const turn = await turnOf(gateway, await run(gateway, "report"));
    expect(turn.reply).toContain('/summarise-thread {"length":"short"}');
  });

  test("is refused if the skill no longer accepts the params of the schedule", async () => {
    const folder = skillsFolder(SUMMARISE);
    const report = { every: "1h", skill: "summarise-thread", params: { length: "short" } };
    await using gateway = await start({ report }, { skills: { dirs: [folder] } });
    const schema = { type: "object", properties: { length: { enum: ["long"] } } };
    writeFileSync(join(folder, "summarise-thread", "params.schema.json"), JSON.stringify(schema));
    await createRpc(gateway.url).call("agent.reload", { agentName: "main" });
    const { status, problem } = await run(gateway, "report");
    expect([status, problem.errors?.map(({ pointer }) => pointer)]).toEqual([400, ["/params/length"]]);
    expect((await list(gateway))[0]?.last).toBeNull();
  });

  test("MUST return the first turn to a repeated call, and refuse the key for another schedule", async () => {
    await using gateway = await start({ brief, other: brief });
    const first = await run(gateway, "brief", { idempotencyKey: "monday" });
    const second = await run(gateway, "brief", { idempotencyKey: "monday" });
    expect(second.json).toEqual(first.json);
    expect([first, second].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    expect((await run(gateway, "other", { idempotencyKey: "monday" })).error).toBe("idempotency-mismatch");
    expect((await run(gateway, "brief", { idempotencyKey: "tuesday" })).json.turn_id).not.toBe(first.json.turn_id);
  });

  test("MUST return the first turn to a repeated call, even if the skill or the schedule was removed", async () => {
    const folder = skillsFolder(SUMMARISE);
    const skills = { dirs: [folder] };
    const report = { every: "1h", skill: "summarise-thread", params: { length: "short" } };
    await using gateway = await start({ report }, { skills });
    const first = await run(gateway, "report", { idempotencyKey: "monday" });
    const again = async () => (await run(gateway, "report", { idempotencyKey: "monday" })).json;
    const schema = { type: "object", properties: { length: { enum: ["long"] } } };
    writeFileSync(join(folder, "summarise-thread", "params.schema.json"), JSON.stringify(schema));
    await createRpc(gateway.url).call("agent.reload", { agentName: "main" });
    expect(await again()).toEqual(first.json);
    rmSync(join(folder, "summarise-thread"), { recursive: true });
    await createRpc(gateway.url).call("agent.reload", { agentName: "main" });
    expect(await again()).toEqual(first.json);
    await gateway.reload({ agents, gateway: { defaultAgent: "main" } });
    expect(await again()).toEqual(first.json);
    expect((await run(gateway, "report", { idempotencyKey: "tuesday" })).error).toBe("schedule-not-found");
  });

  test("starts a turn while the schedule is paused, and while its last turn runs", async () => {
    const puppet = createPuppet();
    await using gateway = await start({ brief }, {}, { makeBackend: () => puppet.backend });
    await pause(gateway);
    const [one, two] = [await run(gateway), await run(gateway)];
    expect([one.status, two.status]).toEqual([200, 200]);
    for (let n = 0; n < 2; n++) (await puppet.next()).end();
    expect((await list(gateway))[0]?.state).toBe("paused");
  });

  test("rejects an unknown name, and suggests the nearest", async () => {
    await using gateway = await start({ brief });
    const { error, problem } = await run(gateway, "breif");
    expect([error, problem.detail]).toEqual([
      "schedule-not-found",
      "No schedule is named `breif`. Did you mean `brief`?",
    ]);
  });

  test("MUST refuse a key with only the scope chat", async () => {
    await using gateway = await start({ brief });
    for (const operation of ["schedules.list", "schedules.run", "schedules.pause", "schedules.resume"] as const) {
      const { error, problem } = await gateway.rest.call(operation, { path: { schedule_name: "brief" } });
      expect([error, problem.detail]).toEqual(["forbidden", "The key lacks the scope admin."]);
    }
    expect((await list(gateway))[0]).toMatchObject({ state: "active", last: null });
  });

  test("is refused by a spent budget, and stores nothing", async () => {
    await using gateway = await start({ brief }, { budgets: { tiny: { per: "day", tokens: 1 } } });
    await turnOf(gateway, await run(gateway));
    const { error, headers } = await run(gateway);
    expect([error, Number(headers.get("retry-after")) > 0]).toEqual(["budget-exceeded", true]);
    expect((await gateway.console.call("turns.list")).json.turns).toHaveLength(1);
  });
});

describe("schedules.pause and schedules.resume", () => {
  test("return the schedule, the second time with the same start of the pause", async () => {
    await using gateway = await start({ brief });
    const { json } = await pause(gateway);
    expect(json).toMatchObject({ name: "brief", state: "paused", paused_at: expect.any(String), next: [] });
    expect((await pause(gateway)).json).toEqual(json);
    expect(await list(gateway)).toEqual([json]);
    const { json: resumed } = await resume(gateway);
    expect(resumed).toMatchObject({ state: "active", paused_at: null });
    expect(resumed.next).toHaveLength(5);
    expect((await resume(gateway)).json).toEqual(resumed);
  });

  test("concern only this schedule", async () => {
    await using gateway = await start({ brief, other: brief });
    await pause(gateway);
    expect((await list(gateway)).map(({ state }) => state)).toEqual(["paused", "active"]);
  });

  test("and runs are pushed on the gateway's stream, each once", async () => {
    await using gateway = await start({ brief });
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null });
    await pause(gateway);
    await pause(gateway);
    const { json } = await run(gateway);
    await resume(gateway);
    await resume(gateway);
    await socket.until(() => socket.pushes.some(({ method }) => method === "schedule.resumed"));
    const pushed = socket.pushes.filter(({ method }) => method.startsWith("schedule."));
    expect(pushed.map(({ method }) => method)).toEqual(["schedule.paused", "schedule.ran", "schedule.resumed"]);
    expect(pushed.map(({ params }) => params)).toMatchObject([
      { scheduleName: "brief" },
      { scheduleName: "brief", outcome: "started", turnId: json.turn_id, reason: null, plannedAt: expect.any(String) },
      { scheduleName: "brief" },
    ]);
  });
});
