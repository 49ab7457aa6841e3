import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { runCli } from "#test/cli/cli.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { type LogRecord, runProcess, startProcess } from "#test/harness/process.ts";
import {
  type Answers,
  ask,
  configOf,
  type Json,
  must,
  readAll,
  rpc,
  SECRETS,
  type Service,
  startService,
} from "./0.2.0/scene.ts";
import { fixture } from "./released.ts";

/** `announcing`: the turns whose replies are not delivered yet. */
type Filled = Answers & { announcing: readonly string[] };
type Made = { at: string; sqlite: Filled; postgres: Filled };
const made = JSON.parse(fixture("answers.json").toString()) as Made;

/** Sets the clock of the current gateway to a minute after the fixtures were made, so that their records are within retention. */
const LATER = `const now = Date.now, by = ${Date.parse(made.at) + 60_000} - now(); Date.now = () => now.call(Date) + by;`;
const CLOCK = ["--import", `data:text/javascript,${encodeURIComponent(LATER)}`];

function isOpen({ status }: Json): boolean {
  return status === "queued" || status === "running";
}
function isWaiting({ status }: Json): boolean {
  return status === "queued";
}

/** The fields that do not change when open work continues. */
const LASTING = {
  turn: ["turn_id", "session_id", "agent", "surface", "caller", "created_at"],
  event: ["event_id", "agent", "text", "metadata", "created_at", "delivery_id"],
  agent: ["agentName", "paused", "pausedAt", "lastTurnAt"],
  session: ["sessionId", "agentName", "channel", "userId", "createdAt"],
} as const;

function lasting(record: Json, names: readonly string[]): Json {
  return Object.fromEntries(names.flatMap((name) => (name in record ? [[name, record[name]]] : [])));
}

/** The timeline of an event shows the steps of its last turn. Another turn may have begun. */
function lastingSteps(timeline: unknown): Json[] {
  const steps = timeline as Json[];
  const isOfEvent = steps.some(({ name }) => name === "event.queued");
  return steps.filter(({ name }) => !isOfEvent || !/^turn\.|^event\.taken$/.test(name as string));
}

/** The usage without the number of messages: a beat may have started another turn. */
function endedUsage({ usage }: Answers): object {
  return JSON.parse(JSON.stringify(usage), (key, value) => (key === "messages" ? undefined : value));
}

/** The events of a stream: their names, ids and data. */
function streamOf(text: string): object[] {
  return text.split("\n\n").flatMap((block) => {
    const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
    return fields.data === undefined ? [] : [{ ...fields, data: JSON.parse(fields.data) as object }];
  });
}

/** Expects all answers of version 0.2.0 unchanged; for open work, only the fields that do not change. New fields are allowed. */
function expectTaken(after: Answers, before: Answers): void {
  for (const [id, turn] of Object.entries(before.turns as Record<string, Json>)) {
    expect(after.turns[id]).toMatchObject(isOpen(turn) ? lasting(turn, LASTING.turn) : turn);
    if (isOpen(turn)) expect(after.turns[id]).toMatchObject({ status: expect.stringMatching(/^(queued|running)$/) });
  }
  for (const [id, text] of Object.entries(before.turnEvents as Record<string, string>))
    expect(streamOf(after.turnEvents[id] as string)).toMatchObject(streamOf(text));
  const turns = Object.values(before.turns as Record<string, Json>).filter(isOpen);
  const events = Object.values(before.events as Record<string, Json>).filter(isWaiting);
  // By the database's clock, beats have become due since then.
  const busy = new Set([...turns.map((turn) => turn.session_id), ...events.map(({ agent }) => `agent:${agent}:main`)]);
  expect(Object.keys(after.sessions)).toEqual(expect.arrayContaining(Object.keys(before.sessions)));
  for (const [id, session] of Object.entries(before.sessions as Record<string, Json>)) {
    expect(after.sessions[id]).toMatchObject(busy.has(id) ? lasting(session, LASTING.session) : session);
    const messages = before.messages[id] as Json[];
    expect((after.messages[id] as Json[]).slice(-messages.length || Number.POSITIVE_INFINITY)).toMatchObject(messages);
  }
  expect(Object.keys(after.events).sort()).toEqual(Object.keys(before.events).sort());
  for (const [id, event] of Object.entries(before.events as Record<string, Json>))
    expect(after.events[id]).toMatchObject(isWaiting(event) ? lasting(event, LASTING.event) : event);
  for (const [id, { timeline, outcome, ...delivery }] of Object.entries(before.deliveries as Record<string, Json>)) {
    expect(after.deliveries[id]).toMatchObject(isOpen({ status: outcome }) ? delivery : { ...delivery, outcome });
    const steps = lastingSteps(timeline);
    expect(lastingSteps((after.deliveries[id] as Json).timeline).slice(0, steps.length)).toMatchObject(steps);
  }
  for (const [name, agent] of Object.entries(before.agents))
    expect(after.agents[name]).toMatchObject(lasting(agent as Json, LASTING.agent));
  // The last use of the key that reads.
  expect(after.keys).toMatchObject(
    before.keys.map(({ last_used_at, ...key }) => (key.key_id ? { ...key, last_used_at } : key)),
  );
  expect(endedUsage(after)).toMatchObject(endedUsage(before));
}

/** A repeated request gets the first answer, and starts nothing. */
async function expectRepeats(url: string, before: Answers): Promise<void> {
  const hook = { token: SECRETS.webhookToken };
  const waiting = { agent: "single", session_id: "room:d", message: "waits with a key", wait: false };
  const event = { agent: "main", text: "waits for a beat" };
  const repeats = [
    ["/api/v1/chat/send", "key of a message", {}, { message: "once", session_id: "chat:keys" }],
    ["/api/v1/chat/send", "key of a waiting turn", {}, waiting],
    ["/hooks/agent", "key of a webhook", hook, { message: "once, by a webhook" }],
    ["/hooks/wake", "key of an event", hook, event],
  ] as const;
  for (const [path, key, more, body] of repeats) {
    const headers = { "idempotency-key": key };
    const { status, isReplayed, text } = await ask(url, path, { ...more, headers, body });
    const { turn_id, turnId = turn_id, eventId } = JSON.parse(text);
    expect([path, status < 300, isReplayed, text]).toEqual([path, true, true, text]);
    expect({ ...before.turns, ...before.events }).toHaveProperty([turnId ?? eventId]);
    expect(
      await ask(url, path, { ...more, headers, body: { ...body, agent: "main", [turnId ? "message" : "text"]: "x" } }),
    ).toMatchObject({ status: 422 });
  }
  const call = { agentName: "main", message: "once", idempotencyKey: "key of a call", wait: true };
  expect(before.turns).toHaveProperty([(await rpc(url, "agent.sendMessage", call)).turnId as string]);
}

/** Lets all waiting work run to its end. */
async function finish(url: string, service: Service, announcing: readonly string[]): Promise<void> {
  service.repair();
  await must(url, "/api/v1/agents/paused/resume", { body: {} });
  const unfinished = async () => {
    const events = ((await must(url, "/api/v1/events?status=queued&limit=500")).events as Json[]).map(
      ({ agent }) => agent as string,
    );
    for (const agent of new Set(events)) await must(url, `/api/v1/agents/${agent}/beat`, { body: {} });
    const turns = ((await must(url, "/api/v1/turns?limit=500")).turns as Json[])
      .filter(isOpen)
      .map(({ turn_id }) => turn_id);
    const delivered = new Set(service.announced.filter(({ status }) => status === 204).map(({ turnId }) => turnId));
    return [...events, ...turns, ...announcing.filter((turnId) => !delivered.has(turnId))];
  };
  await expect.poll(unfinished, { timeout: 120_000, interval: 200 }).toEqual([]);
}

/** Expects that all open work of `before` was done exactly once and in order. */
function expectDone(after: Answers, before: Filled, { calls, announced }: Service): void {
  const asked = calls.filter(({ kind }) => kind === "turn");
  const open = Object.values(before.turns as Record<string, Json>).filter(isOpen);
  const callsOf = (turnId: unknown) => asked.filter((call) => call.turnId === turnId).length;
  for (const { turn_id } of open) {
    expect(after.turns[turn_id as string]).toMatchObject({ status: "completed" });
    expect([turn_id, callsOf(turn_id)]).toEqual([turn_id, 1]);
  }
  for (const turn of Object.values(before.turns as Record<string, Json>).filter((turn) => !isOpen(turn))) {
    expect(after.turns[turn.turn_id as string]).toMatchObject(turn);
    expect(callsOf(turn.turn_id)).toBe(0);
  }
  for (const event of Object.values(before.events as Record<string, Json>)) {
    const { turn_id, ...now } = after.events[event.event_id as string] as Json;
    if (!isWaiting(event)) {
      expect({ turn_id, ...now }).toMatchObject(event);
      continue;
    }
    expect(now).toMatchObject({ status: "handled" });
    expect(after.turns[turn_id as string] ?? turn_id).toMatchObject({ status: "completed" });
    const callsWithEvent = asked.filter(
      ({ agent, text }) => agent === event.agent && text.includes(event.text as string),
    );
    expect(callsWithEvent.map(({ turnId }) => turnId)).toEqual([turn_id]);
  }
  const delivered = announced
    .filter(({ status, turnId }) => status === 204 && turnId in before.turns)
    .map(({ turnId }) => turnId);
  expect(delivered.sort()).toEqual([...before.announcing].sort());
  const inRoom = (room: string) =>
    asked.filter(({ sessionId }) => sessionId === room).map(({ text }) => text.replace("[hold] ", ""));
  expect(inRoom("room:a")).toEqual([
    "runs in room a",
    "waits in room a 0",
    "waits in room a 1",
    "waits in room a behind the compaction",
  ]);
  expect(inRoom("room:paused 0")).toEqual(["waits for the end of the pause 0", "waits for the end of the pause 2"]);
}

/** Expects that each agent handled its events in one beat. A beat that ran when the gateway was killed continues with the events after its first turn. */
function expectBeats(records: readonly LogRecord[], before: Answers): void {
  const waiting: Record<string, number> = {};
  for (const { agent } of Object.values(before.events as Record<string, Json>).filter(isWaiting))
    waiting[agent as string] = (waiting[agent as string] ?? 0) + 1;
  const beats = records.filter(({ event, events }) => event === "beat.ran" && events !== 0);
  expect(Object.fromEntries(beats.map(({ agent, events }) => [agent, events]))).toEqual(waiting);
  expect(beats).toHaveLength(Object.keys(waiting).length);
}

/** Starts the current gateway on the fixture's store, and again after all work is done. */
async function takeOver(before: Filled, store: object, cwd: string): Promise<void> {
  await using service = await startService();
  service.hold(() => true);
  const config = configOf(service.url, store);
  {
    await using gateway = await startProcess({ cwd, config, node: CLOCK });
    expectTaken(await readAll(gateway.url), before);
    await expectRepeats(gateway.url, before);
    await finish(gateway.url, service, before.announcing);
    expectDone(await readAll(gateway.url), before, service);
    expectBeats(gateway.records, before);
    const errors = gateway.records.filter(({ level }) => level === "error");
    expect(errors).toEqual([]);
    gateway.kill("SIGKILL");
    await gateway.exited;
  }
  const calls = service.calls.length;
  await using again = await startProcess({ cwd, config, node: CLOCK });
  expectDone(await readAll(again.url), before, service);
  expect(service.calls).toHaveLength(calls);
}

/** The session whose first turn had waited behind a compaction that was never stored. No other turn of its session makes it ready. */
const BLOCKED = "room:paused 0";
const BLOCK_SQLITE = `UPDATE live SET body = json_remove(body, '$.open.readyOrder')
  WHERE kind = 'turn' AND json_extract(body, '$.turn.sessionId') = '${BLOCKED}'`;
const BLOCK_POSTGRES = `update turns set ready_at = null, ready_order = null
  where ended_at is null and session = (select ordinal from sessions where session_id like '%${BLOCKED}')`;

function newFolder(): string {
  const cwd = mkdtempSync(join(tmpdir(), "gateway-upgrade-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  return cwd;
}

describe("a store of version 0.2.0, whose gateway was killed in the middle of its work", () => {
  it("is upgraded at the start, for a SQLite file", async () => {
    const cwd = newFolder();
    for (const suffix of ["", "-wal"]) writeFileSync(join(cwd, `gateway.db${suffix}`), fixture(`sqlite${suffix}`));
    const db = openDatabase(join(cwd, "gateway.db"));
    db.exec(BLOCK_SQLITE);
    db.close();
    await takeOver(made.sqlite, { type: "sqlite", path: "./gateway.db" }, cwd);
  });
});

await postgresTests((server) => {
  it("is upgraded by the command, for a PostgreSQL database", async () => {
    const url = await server.createDatabase();
    await server.run(url, fixture("postgres.sql").toString());
    await server.run(url, BLOCK_POSTGRES);
    const cwd = newFolder();
    const store = { type: "postgres", url };
    writeFileSync(join(cwd, "gateway.json5"), JSON.stringify(configOf("http://127.0.0.1:1", store)));
    const refused = await runProcess({ cwd });
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(
      /^The store cannot be opened: The schema of the database has version 6 \(release 0\.2\.0\), and this gateway needs version \d+\. Stop all gateways, make a backup, and run: agent-gateway migrate\n/,
    );
    expect(await runCli(["migrate"], { cwd })).toMatchObject({ code: 0 });
    await takeOver(made.postgres, store, cwd);
  });
});
