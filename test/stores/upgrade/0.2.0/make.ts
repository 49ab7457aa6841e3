/**
 * Fills a SQLite file and a PostgreSQL database through the HTTP API of a released gateway, then kills the gateway with SIGKILL. Writes the stores and
 * the gateway's answers about them next to this file. To make the fixtures again with the build of version 0.2.0:
 *
 *   git worktree add FOLDER 889c4271 && (cd FOLDER && npm ci && npm run build)
 *   node --import tsx test/stores/upgrade/0.2.0/make.ts FOLDER
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";
import { startFleet } from "#test/crash/fleet.ts";
import { startPostgres } from "#test/harness/postgres.ts";
import { systemBins } from "#test/harness/postgres-bins.ts";
import { type Answers, ask, configOf, FAIL, HOLD, must, readAll, rpc, SECRETS, startService } from "./scene.ts";

const HOSTILE = [
  "a NUL \u0000 in the middle",
  "\u0000",
  "a lone \ud800 surrogate",
  "\udc00 the other half first \ud83d",
  "emoji 👩‍👩‍👧 and 𝒳",
  "quotes \" ' and \\ and \\u0000 as six characters, $1 and %s and {body.text}",
  "controls \u0001 \u001f \u007f \u0085 \u2028 \u2029",
  "null",
];

const [build = ""] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "gateway-fixture-"));

type Filled = Answers & { announcing: readonly string[] };
type Scene = { url: string; service: Awaited<ReturnType<typeof startService>> };

async function until(isSo: () => Promise<boolean> | boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++, await pause(50)) if (await isSo()) return;
  throw new Error(`timeout: ${what}`);
}

function chat(url: string, session_id: string | undefined, message: string, more: object = {}, headers = {}) {
  return must(url, "/api/v1/chat/send", { body: { message, ...(session_id && { session_id }), ...more }, headers });
}

/** Sends a message without waiting for its reply. */
async function queue(url: string, agent: string, session_id: string, message: string): Promise<string> {
  const body = { agent, session_id, message, wait: false };
  return (await must(url, "/api/v1/chat/send", { body }, 202)).turn_id as string;
}

const hook = { token: SECRETS.webhookToken };

function wake(url: string, agent: string, text: string, more: object = {}) {
  return must(url, "/hooks/wake", { ...hook, body: { agent, text, ...more } });
}

function announce(url: string, channel: string, message: string) {
  return must(url, "/hooks/agent", { ...hook, body: { message, channel, delivery: "announce" } });
}

async function fillKeys({ url }: Scene): Promise<void> {
  const token = SECRETS.consoleToken;
  const make = (name: string) => must(url, "/api/v1/keys", { token, body: { name, scopes: ["chat", "admin"] } }, 201);
  const [first, second, third] = [await make("support"), await make("support desk"), await make("revoked")];
  await must(url, `/api/v1/keys/${first.key_id}/rotate`, { token, body: {} }, 201);
  await must(url, `/api/v1/keys/${third.key_id}`, { token, method: "DELETE" }, 204);
  await must(url, "/api/v1/chat/send", { token: second.key as string, body: { message: "by a key of the store" } });
}

/** Conversations: a long one with a summary, hostile texts, failed and cancelled turns, idempotency keys. */
async function fillSessions({ url, service }: Scene): Promise<void> {
  for (let n = 0; n < 30; n++) await chat(url, "chat:long", `message ${n}: ${"words ".repeat(20)}`);
  await rpc(url, "session.compact", { sessionId: "chat:long", keep: 6 });
  for (let n = 30; n < 34; n++) await chat(url, "chat:long", `message ${n}`);
  for (const [n, text] of HOSTILE.entries()) {
    await chat(url, `room "${n}" \\ 'x' $1`, text);
    await chat(url, undefined, text, { user_id: text });
    await chat(url, "chat:hostile", text);
    await must(url, "/hooks/agent", {
      ...hook,
      body: { message: text, context: { [text]: text }, channel: text.slice(0, 40) },
    });
  }
  await rpc(url, "session.compact", { sessionId: "chat:hostile", keep: 5 });
  await ask(url, "/api/v1/chat/send", { body: { message: `${FAIL} fails`, session_id: "chat:ends" } });
  const running = await queue(url, "main", "chat:ends", `${HOLD} is cancelled while it runs`);
  const waiting = await queue(url, "main", "chat:ends", "is cancelled while it waits");
  await until(() => service.calls.some(({ turnId }) => turnId === running), "a turn runs");
  for (const id of [waiting, running]) await must(url, `/api/v1/turns/${id}/cancel`, { body: {} });
  await chat(url, "chat:deleted", "in a deleted session");
  await rpc(url, "session.delete", { sessionId: "chat:deleted" });
  await chat(url, "chat:keys", "once", {}, { "idempotency-key": "key of a message" });
  await rpc(url, "agent.sendMessage", {
    agentName: "main",
    message: "once",
    idempotencyKey: "key of a call",
    wait: true,
  });
}

/** Requests with every kind of answer, and replies on their way to channels. Answers the turns whose replies are not delivered yet. */
async function fillDeliveries({ url, service }: Scene): Promise<string[]> {
  const key = { "idempotency-key": "key of a webhook" };
  for (let n = 0; n < 2; n++)
    await must(url, "/hooks/agent", { ...hook, headers: key, body: { message: "once, by a webhook" } });
  await ask(url, "/hooks/agent", { ...hook, headers: key, body: { message: "another body" } });
  await must(url, "/hooks/alert", { ...hook, body: { status: "firing", title: HOSTILE.join(" ") } });
  await must(url, "/hooks", { ...hook, body: { status: "firing", title: "by match" } });
  await ask(url, "/hooks/alert", { ...hook, body: { status: "resolved" } });
  await ask(url, "/hooks", { ...hook, body: { status: "resolved" } });
  await ask(url, "/hooks/agent", { token: "a-wrong-token", body: { message: "refused" } });
  await ask(url, "/hooks/agent", { ...hook, body: "not JSON" });
  await ask(url, "/hooks/agent", { ...hook, body: Uint8Array.from({ length: 256 }, (_, n) => n) });
  await ask(url, "/hooks/agent", { ...hook, body: { message: "x", unknown: true } });
  await ask(url, "/hooks/agent", { ...hook, body: { message: "x", agent: "not-configured" } });
  await announce(url, "ops", "is delivered to its channel");
  await announce(url, "gone", "is refused by its channel");
  const pending = [await announce(url, "busy", "is retried by its channel")];
  for (let n = 0; n < 6; n++) pending.push(await announce(url, "stuck", `waits for its channel ${n}`));
  await until(() => service.announced.filter(({ channel }) => channel !== "ops").length >= 2, "replies were refused");
  return pending.map(({ turnId }) => turnId as string);
}

/** Turns that run, and turns, a compaction and a whole agent behind them. */
async function fillQueues({ url, service }: Scene): Promise<void> {
  for (let n = 0; n < 12; n++) await chat(url, "room:a", `before ${n}`, { agent: "single" });
  await queue(url, "single", "room:a", `${HOLD} runs in room a`);
  await until(() => service.calls.some(({ text }) => text.endsWith("runs in room a")), "the turn of room a runs");
  for (let n = 0; n < 2; n++) await queue(url, "single", "room:a", `waits in room a ${n}`);
  // The compaction's place in the queue is stored. The gateway is killed before it answers the caller.
  void rpc(url, "session.compact", { sessionId: "room:a", keep: 2 }).catch(() => {});
  await pause(500);
  await queue(url, "single", "room:a", "waits in room a behind the compaction");
  for (const room of ["b", "c"]) await queue(url, "single", `room:${room}`, `waits for the agent in room ${room}`);
  const body = { agent: "single", session_id: "room:d", message: "waits with a key", wait: false };
  await must(url, "/api/v1/chat/send", { body, headers: { "idempotency-key": "key of a waiting turn" } }, 202);
}

/** Events: handled, dead, tried twice, in the turn of a beat, waiting, and those of a paused agent and of a beat that cannot begin. */
async function fillEvents({ url, service }: Scene): Promise<void> {
  const eventOf = async (id: unknown) => await must(url, `/api/v1/events/${id}`);
  const beat = (agent: string) => must(url, `/api/v1/agents/${agent}/beat`, { body: {} });
  const failOnce = async (id: unknown, attempts: number) => {
    // The last beat may be ending.
    await pause(500);
    await beat("broken");
    await until(async () => (await eventOf(id)).attempts === attempts, `event ${id} was tried ${attempts} times`);
  };
  const dead = (await wake(url, "broken", "dies")).eventId;
  for (let n = 1; n <= 3; n++) await failOnce(dead, n);
  const tried = (await wake(url, "broken", "was tried twice")).eventId;
  for (let n = 1; n <= 2; n++) await failOnce(tried, n);

  for (const text of HOSTILE) await wake(url, "watch", `event: ${text}`, { metadata: { [text]: [text] } });
  const { eventId } = await wake(url, "watch", "the last of the first beat", { mode: "now" });
  await until(async () => (await eventOf(eventId)).status === "handled", "the first beat ended");
  await must(url, "/hooks/wake", {
    ...hook,
    body: { agent: "main", text: "waits for a beat" },
    headers: { "idempotency-key": "key of an event" },
  });

  await must(url, "/api/v1/agents/watch/pause", { body: {} });
  await wake(url, "watch", `${HOLD} the first of a beat that runs`);
  for (let n = 1; n < 104; n++) await wake(url, "watch", `event ${n} of a beat that runs`);
  await must(url, "/api/v1/agents/watch/resume", { body: {} });
  await beat("watch");
  await until(() => service.calls.some(({ text }) => text.includes("the first of a beat that runs")), "a beat runs");
  await wake(url, "watch", "asks for a beat while one runs", { mode: "now" });

  await must(url, "/api/v1/agents/paused/pause", { body: {} });
  for (let n = 0; n < 3; n++) await queue(url, "paused", `room:paused ${n % 2}`, `waits for the end of the pause ${n}`);
  await wake(url, "paused", "waits for a beat of a paused agent");
  await wake(url, "paused", "asks for a beat of a paused agent", { mode: "now" });

  await queue(url, "full", "agent:full:main", `${HOLD} runs in a full session`);
  await until(() => service.calls.some(({ text }) => text.endsWith("runs in a full session")), "a session is full");
  for (let n = 0; n < 4; n++) await queue(url, "full", "agent:full:main", `fills a session ${n}`);
  await wake(url, "full", "its beat cannot begin", { mode: "now" });
}

/** Reads until two successive readings are equal. */
async function readSettled(url: string): Promise<Answers> {
  let before = await readAll(url);
  for (let tries = 0; tries < 40; tries++) {
    const after = await readAll(url);
    if (isDeepStrictEqual(before, after)) return after;
    before = after;
  }
  throw new Error("the answers changed with each reading");
}

async function fill(store: object): Promise<Filled> {
  await using service = await startService();
  service.hold((what) => what.includes(HOLD) || what === "channel stuck");
  const main = resolve(build, "dist/main.js");
  await using fleet = await startFleet({ main, folder, store, count: 1, more: configOf(service.url, store) });
  const [gateway] = fleet.nodes;
  if (!gateway) throw new Error("no gateway was started");
  await gateway.ready();
  const scene = { url: gateway.url, service };
  await fillKeys(scene);
  await fillSessions(scene);
  const announcing = await fillDeliveries(scene);
  await fillQueues(scene);
  await fillEvents(scene);
  const answers = await readSettled(gateway.url);
  await gateway.kill();
  return { ...answers, announcing };
}

const answers: Record<string, Filled | string> = { at: new Date().toISOString() };
/** The copies of a page in a write-ahead log are far apart and nearly equal, so only a large window compresses them. */
const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
function write(name: string, content: Uint8Array | string): void {
  writeFileSync(join(import.meta.dirname, `${name}.br`), brotliCompressSync(content, { params }));
}

const file = join(folder, "gateway.db");
answers.sqlite = await fill({ type: "sqlite", path: file });
for (const suffix of ["", "-wal"]) write(`sqlite${suffix}`, readFileSync(`${file}${suffix}`));

await using server = await startPostgres();
const url = server.url(new URL(await server.createDatabase()).pathname.slice(1));
answers.postgres = await fill({ type: "postgres", url });
const [bin = ""] = systemBins();
const dump = execFileSync(join(bin, "pg_dump"), ["--inserts", "--no-owner", url], {
  encoding: "utf8",
  maxBuffer: 2 ** 28,
});
// Only psql understands lines that begin with a backslash, and each version of PostgreSQL has other settings.
const lines = dump.split("\n").filter((line) => !line.startsWith("\\") && !line.startsWith("SET "));
write("postgres.sql", lines.join("\n"));

write("answers.json", JSON.stringify(answers));
rmSync(folder, { recursive: true });
