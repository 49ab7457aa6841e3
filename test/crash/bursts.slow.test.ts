import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { main } from "#test/harness/process.ts";
import { createRandom } from "#test/harness/random.ts";
import { type Fleet, type GatewayNode, startFleet } from "./fleet.ts";
import { createCaller, NoAnswer, SECRETS } from "./requests.ts";

const KEYS = ["a", "b", "c", "d", "e"];
const ROUNDS = 10;
const TAKES = ["last", "all"] as const;
type Take = (typeof TAKES)[number];

/** The mappings of both kinds. Their groups stay open until a request moves their close. */
function burstsWith(window: string): object {
  const of = (take: Take) => ({
    match: {},
    message: "{body.text}",
    agent: "quick",
    session: `webhook:${take}-{body.key}`,
    coalesce: { key: "{body.key}", window, maxWait: "2h", take },
  });
  const mappings = Object.fromEntries(TAKES.map((take) => [take, of(take)]));
  return { token: SECRETS.webhookToken, rateLimit: { maxRequests: 0 }, mappings };
}

async function restart(node: GatewayNode, webhooks: object): Promise<void> {
  await node.kill();
  const file = join(dirname(node.logFile), "gateway.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), webhooks }));
  node.start();
  await node.ready();
}

/**
 * Sends bursts to gateways that are killed meanwhile, then lets the groups close. Returns the turns that the requests of each key were answered with, and the
 * replies of the turns in its session: the agent repeats its messages.
 */
async function sendBursts(fleet: Fleet) {
  const random = createRandom(Math.floor(Math.random() * 1e6));
  const caller = createCaller(30_000);
  onTestFinished(() => caller.close());
  const ask = async (method: string, path: string, body?: object, key?: string) => {
    const token = path.startsWith("/hooks") ? SECRETS.webhookToken : SECRETS.key;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    for (;;) {
      try {
        const url = `${random.pick(fleet.urls)}${path}`;
        const answer = await caller.ask(
          url,
          method,
          key ? { ...headers, "idempotency-key": key } : headers,
          body && JSON.stringify(body),
        );
        if (answer.status === 200) return JSON.parse(answer.text) as Record<string, unknown>;
        expect([503, 404]).toContain(answer.status);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await pause(10);
    }
  };
  const turnsOf = new Map<string, Set<unknown>>();
  /** A request without an answer is repeated with its key. */
  const send = async (take: Take, key: string, n: number) => {
    const { turnId } = await ask("POST", `/hooks/${take}`, { key, text: `${key}${n}` }, `${take}-${key}-${n}`);
    turnsOf.set(`${take} ${key}`, (turnsOf.get(`${take} ${key}`) ?? new Set()).add(turnId));
  };
  const each = (work: (take: Take, key: string) => Promise<void>) =>
    Promise.all(TAKES.flatMap((take) => KEYS.map((key) => work(take, key))));
  const sent = each(async (take, key) => {
    for (let n = 1; n < ROUNDS; n++) {
      await send(take, key, n);
      await pause(random.below(60));
    }
  });
  await pause(100 + random.below(200));
  const killed = random.pick(fleet.nodes);
  await killed.kill();
  killed.start();
  await sent;
  await Promise.all(fleet.nodes.map((node) => restart(node, burstsWith("1s"))));
  await each((take, key) => send(take, key, ROUNDS));
  const replies = new Map<string, unknown[]>();
  await each(async (take, key) => {
    const path = `/api/v1/turns?session_id=${encodeURIComponent(`webhook:${take}-${key}`)}`;
    const list = async () => (await ask("GET", path)).turns as { turn_id: string; status: string }[];
    const isEnded = async () => (await list()).every(({ status }) => status === "completed");
    await expect.poll(isEnded, { timeout: 60_000, interval: 50 }).toBe(true);
    const turns = await Promise.all((await list()).map((turn) => ask("GET", `/api/v1/turns/${turn.turn_id}`)));
    replies.set(
      `${take} ${key}`,
      turns.map(({ reply }) => reply),
    );
  });
  return { turnsOf, replies };
}

async function crashBursts(store: object, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-bursts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await using fleet = await startFleet({ main, folder, store, count, more: { webhooks: burstsWith("1h") } });
  const { turnsOf, replies } = await sendBursts(fleet);
  for (const key of KEYS) {
    const all = Array.from({ length: ROUNDS }, (_, n) => `${key}${n + 1}`);
    expect(turnsOf.get(`last ${key}`)?.size).toBe(1);
    expect(turnsOf.get(`all ${key}`)?.size).toBe(1);
    expect(replies.get(`last ${key}`)).toEqual([all.at(-1)]);
    expect(replies.get(`all ${key}`)).toEqual([all.join("\n\n")]);
  }
}

test("a gateway on SQLite that is killed during bursts starts one turn for each key", async () => {
  await crashBursts({ type: "sqlite", path: "../gateway.db" }, 1);
});

await postgresTests((server) => {
  test("three gateways on one database, killed during bursts, start one turn for each key", async () => {
    await crashBursts({ type: "postgres", url: await server.createDatabase() }, 3);
  });
});
