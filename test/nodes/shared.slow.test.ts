import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import type { Reply } from "#test/harness/rest.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { type Nodes, startNodes, type TestNode } from "./nodes.ts";

function onEach<T>({ all }: Nodes, call: (node: TestNode) => Promise<T>): Promise<T[]> {
  return Promise.all(all.map(call));
}

await postgresTests((server) => {
  describe("several gateways share", () => {
    let nodes: Nodes;
    beforeAll(async () => {
      nodes = await startNodes(server, 3);
    });
    afterAll(() => nodes[Symbol.asyncDispose]());

    it("the rate limits of webhooks, of REST and of RPC", async () => {
      const rateLimit = { maxRequests: 20, windowMs: 60_000 };
      const config = { webhooks: { rateLimit }, gateway: { rest: { rateLimit }, rpc: { rateLimit } } };
      await using limited = await startNodes(server, 3, { config });
      const surfaces: Record<string, (node: TestNode, n: number) => Promise<Reply>> = {
        webhooks: ({ hooks }, n) => hooks.wake({ text: `${n}` }),
        rest: ({ rest }) => rest.call("skills.list"),
        rpc: ({ rpc }, id) => rpc.send({ jsonrpc: "2.0", id, method: "agent.list" }),
      };
      for (const [surface, send] of Object.entries(surfaces)) {
        const replies = await Promise.all(Array.from({ length: 60 }, (_, n) => send(limited.at(n), n)));
        const refused = replies.filter(({ error }) => error === "rate-limited");
        expect([surface, replies.filter(({ error }) => error === undefined).length]).toEqual([surface, 20]);
        expect([surface, refused.length]).toEqual([surface, 40]);
        const status = surface === "rpc" ? 200 : 429;
        expect([...new Set(refused.map((reply) => reply.status))]).toEqual([status]);
        if (status === 429) expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(50);
      }
    });

    it("the limits of keys: agents hold on every gateway, and a rate on all of them together", async () => {
      const config = {
        agents: { main: { backend: "echo" as const }, other: { backend: "echo" as const } },
        gateway: { defaultAgent: "main" },
      };
      await using limited = await startNodes(server, 3, { config });
      const create = async (body: object) =>
        String((await limited.at(0).console.call("keys.create", { body: { name: "widget", ...body } })).json.key);
      const narrow = await create({ agents: ["other"] });
      const send = ({ rest }: TestNode, agent: string) =>
        rest.call("chat.send", { key: narrow, body: { message: "hi", agent } });
      const refusals = () => onEach(limited, async (node) => (await send(node, "main")).error);
      await expect.poll(refusals).toEqual(["forbidden", "forbidden", "forbidden"]);
      expect(await onEach(limited, async (node) => (await send(node, "other")).status)).toEqual([200, 200, 200]);

      const slow = await create({ rate_limit: { limit: 90, window_ms: 600_000 } });
      let passed = 0;
      const ask = async ({ rest }: TestNode) => {
        const { status } = await rest.call("skills.list", { key: slow });
        if (status === 200) passed++;
        return status;
      };
      await expect.poll(() => onEach(limited, ask)).toEqual([200, 200, 200]);
      await Promise.all(Array.from({ length: 120 }, (_, n) => ask(limited.at(n))));
      expect(passed).toBe(90);
    });

    it("the budget of a key: it is one for all gateways, and a grant on one opens it on all", async () => {
      await using limited = await startNodes(server, 3);
      const body = { name: "widget", budget: { per: "month", tokens: 1 } };
      const key = String((await limited.at(0).console.call("keys.create", { body })).json.key);
      const ask = async ({ rest }: TestNode) => {
        const { error, status } = await rest.call("chat.send", { key, body: { message: "hi" } });
        return error ?? String(status);
      };
      expect(await ask(limited.at(0))).toBe("200");
      const spent = ["budget-exceeded", "budget-exceeded", "budget-exceeded"];
      await expect.poll(() => onEach(limited, ask)).toEqual(spent);
      const path = { name: "key:widget" };
      expect((await limited.at(1).console.call("budgets.grant", { path, body: { tokens: 1_000 } })).status).toBe(200);
      expect(await onEach(limited, ask)).toEqual(["200", "200", "200"]);
    });

    it("rotations: the new key and the old one's end are known to all gateways, and one of two rotations succeeds", async () => {
      const [first, second] = nodes.all as [TestNode, TestNode];
      const { key: old, key_id } = (await first.console.call("keys.create", { body: { name: "turns over" } })).json;
      const path = { key_id: String(key_id) };
      const statuses = (key: unknown) =>
        onEach(nodes, async ({ rest }) => (await rest.call("skills.list", { key: String(key) })).status);
      await expect.poll(() => statuses(old)).toEqual([200, 200, 200]);
      const rotations = await onEach(nodes, ({ console }) =>
        console.call("keys.rotate", { path, body: { overlap_seconds: 2 } }),
      );
      expect(rotations.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
      const made = rotations.find(({ status }) => status === 201)?.json;
      await expect.poll(() => statuses(made?.key)).toEqual([200, 200, 200]);
      const errors = () =>
        onEach(nodes, async ({ rest }) => (await rest.call("skills.list", { key: String(old) })).error);
      await expect.poll(errors).toEqual(["key-expired", "key-expired", "key-expired"]);
      expect(await statuses(made?.key)).toEqual([200, 200, 200]);
      const { keys } = (await second.console.call("keys.list")).json as { keys: { key_id: string }[] };
      expect(keys.find((one) => one.key_id === key_id)).toMatchObject({ replaced_by: made?.key_id });
    });

    it("sessions, deliveries, usage, positions in streams, and what these return", async () => {
      const [first, second, third] = nodes.all as [TestNode, TestNode, TestNode];
      const sent = await first.hooks.agent({ message: "hello", session: "webhook:here" });
      const turn_id = String(sent.json.turnId);
      const turnOn = async ({ rest }: TestNode) => (await rest.call("turns.get", { path: { turn_id } })).json;
      await expect.poll(() => turnOn(second)).toMatchObject({ status: "completed", reply: "hello" });
      const delivery_id = String(sent.json.deliveryId);
      const { json } = await third.console.call("deliveries.get", { path: { delivery_id } });
      expect(json).toMatchObject({ turn_id, outcome: "completed" });
      const usage = await onEach(nodes, async ({ rpc }) => (await rpc.call("usage.stats", {})).result);
      expect(usage[0]?.total.messages).toBeGreaterThan(0);
      expect(usage).toEqual([usage[0], usage[0], usage[0]]);

      using here = await openSocket(first);
      const { sessions } = await here.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
        sessions: { "webhook:here": null },
      });
      await second.hooks.agent({ message: "more", session: "webhook:here" });
      using there = await openSocket(third);
      await there.call("rpc.subscribe", { sessions: { "webhook:here": sessions["webhook:here"] } });
      for (const socket of [here, there]) await socket.pushed("turn.completed", ({ reply }) => reply === "more");
      expect(there.names()).toEqual(here.names());
      expect(there.names()).not.toContain("stream.reset");
    });

    it("heartbeats: each event is handled once, and beats never overlap", async () => {
      const config = { agents: { main: { backend: "echo", heartbeat: { every: "20ms" } } } } as const;
      await using beating = await startNodes(server, 3, { config });
      const texts = Array.from({ length: 60 }, (_, n) => `event number ${n}.`);
      const woken = await Promise.all(
        texts.map((text, n) => beating.at(n).hooks.wake({ text, mode: n % 9 === 0 ? "now" : "next-heartbeat" })),
      );
      const { store } = beating.at(0).gateway;
      const states = async () => {
        const events = await Promise.all(woken.map(({ json }) => store.getEvent(String(json.eventId))));
        return [...new Set(events.map((event) => event?.status))];
      };
      await expect.poll(states).toEqual(["handled"]);
      const { entries } = await store.readGatewayEntries({ after: 0, limit: 1_000 });
      const handled = entries.flatMap((entry) => (entry.name === "event.handled" ? entry.eventId : []));
      expect(handled.sort()).toEqual(woken.map(({ json }) => json.eventId).sort());
      const told = await store.readMessages("agent:main:main", { limit: 1_000 });
      const asked = told.filter(({ role }) => role === "user").map(({ text }) => text);
      for (const text of texts) expect(asked.filter((message) => message.includes(text))).toHaveLength(1);
    });

    it("a session's queue with compactions: one on another gateway waits for the turn before it", async () => {
      const [first, second, third] = nodes.all as [TestNode, TestNode, TestNode];
      for (let n = 0; n < 3; n++)
        await first.rpc.call("agent.sendMessage", {
          agentName: "main",
          message: `${n}`,
          sessionId: "long",
          wait: true,
        });
      const filled = [await second.fill(), await third.fill()];
      await first.rpc.call("agent.sendMessage", { agentName: "live", message: "x", sessionId: "live" });
      const played = await first.next();
      const compacted = second.rpc.call("session.compact", { sessionId: "live", keep: 1 });
      const order: string[] = [];
      void compacted.then(() => order.push("compacted"));
      await second.rpc.call("session.get", { sessionId: "live" });
      order.push("turn ended");
      played.say("done");
      played.end();
      expect(await compacted).toMatchObject({ result: { compacted: true, before: { messages: 2 } } });
      expect(order).toEqual(["turn ended", "compacted"]);
      expect((await second.rpc.call("session.compact", { sessionId: "long", keep: 1 })).result).toMatchObject({
        compacted: true,
      });
      for (const one of filled) one.end();
    });
  });
});
