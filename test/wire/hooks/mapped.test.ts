import { describe, expect, it } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { hookTransports } from "#test/harness/hooks.ts";
import { deliveryOf, ended, type Mappings, stepOf, withMappings } from "./mapped-payloads.ts";

const AGENTS = { main: { backend: "echo" }, other: { backend: "echo", model: "fast" } } as const;

describe("a payload without a name", () => {
  const MAPPINGS: Mappings = {
    signed: { match: {}, message: "signed", verify: { type: "github", secret: "a-secret-of-a-sender" } },
    push: {
      match: { "headers.X-GitHub-Event": "push", "body.ref": ["refs/heads/main", "refs/heads/next"] },
      message: "{body.pusher.name} pushed {body.commits.0.id} ({headers.x-github-event}){body.missing}",
      session: "webhook:github",
      agent: "other",
      model: "deep",
      channel: "ops",
      delivery: "announce",
    },
    alert: {
      match: { "body.status": "firing", "body.count": 100, "body.loud": true },
      message: "{body}".replace("body", "body.labels"),
    },
    silent: { match: { "body.quiet": "yes" }, message: "{body.text}" },
  };
  const MAIN = { ref: "refs/heads/main", pusher: { name: "ada" }, commits: [{ id: "c0ffee" }] };
  const PUSH = { headers: { "X-GitHub-Event": "push" } };

  describe.each(Object.entries(hookTransports))("over %s", (_, { open, config }) => {
    it("starts the turn of the first mapping that matches, and says what it resolved to", async () => {
      await using gateway = await startGateway({
        config: withMappings(MAPPINGS, {
          ...config,
          agents: AGENTS,
          gateway: { ...config?.gateway, defaultAgent: "main" },
        }),
      });
      await using client = await open(gateway);
      const reply = await client.mapped(MAIN, PUSH);
      expect(reply.json).toEqual({
        status: 200,
        message: "turn started",
        sessionId: "webhook:github",
        turnId: expect.stringMatching(/^turn_/),
        deliveryId: expect.stringMatching(/^dlv_/),
        agent: "other",
        model: "deep",
        channel: "ops",
        delivery: "announce",
        warning: expect.stringContaining("`ops` is not among `channels`"),
        mapping: "push",
      });
      const unmatched = await client.mapped({ ...MAIN, ref: "refs/heads/draft" }, PUSH);
      expect([unmatched.status, unmatched.error]).toEqual([404, "mapping-not-found"]);
    });
  });

  describe("over one connection", async () => {
    const gateway = await shareGateway({
      config: withMappings(MAPPINGS, { agents: AGENTS, gateway: { defaultAgent: "main" } }),
    });

    it("is told to the agent as the template makes it, and kept as what came from outside", async () => {
      const { hooks, gateway: inner } = gateway;
      const reply = await hooks.mapped(MAIN, PUSH);
      expect(await ended(gateway, reply)).toBe("ada pushed c0ffee (push)");
      const entries = await inner.store.readEntries("webhook:github", { after: 0, limit: 10 });
      expect(entries.find(({ name }) => name === "message.created")).toMatchObject({
        text: "ada pushed c0ffee (push)",
        outside: true,
      });
    });

    it("has its numbers and flags compared as JSON writes them, and objects filled in as JSON", async () => {
      const { hooks } = gateway;
      const reply = await hooks.mapped('{"status":"firing","count":1e2,"loud":true,"labels":{"a":[1,"x"]}}');
      expect(reply.json).toMatchObject({
        mapping: "alert",
        agent: "main",
        model: null,
        channel: null,
        delivery: "none",
      });
      expect(await ended(gateway, reply)).toBe('{"a":[1,"x"]}');
    });

    it("gets a session of its own, apart from all others, where the mapping names none", async () => {
      const { hooks } = gateway;
      const alert = { status: "firing", count: 100, loud: true, labels: {} };
      const [one, two] = [await hooks.mapped(alert), await hooks.mapped(alert)];
      for (const { json } of [one, two]) expect(json.sessionId).toMatch(/^webhook:[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(one.json.sessionId).not.toBe(two.json.sessionId);
    });

    it("that no mapping matches is 404, and its timeline says why of each that was tried", async () => {
      const { hooks, console } = gateway;
      const before = await console.call("deliveries.list", { query: { outcome: "unmatched" } });
      const reply = await hooks.mapped({ ref: "refs/heads/draft", status: "firing", count: "99", quiet: "yes" }, PUSH);
      expect([reply.status, reply.problem.detail]).toEqual([404, "No mapping matched the payload."]);
      const { json } = await console.call("deliveries.list", { query: { outcome: "unmatched" } });
      const [found, ...others] = json.deliveries as { delivery_id: string }[];
      expect(others).toEqual(before.json.deliveries);
      const delivery = await deliveryOf(gateway, found?.delivery_id);
      expect(delivery).toMatchObject({ outcome: "unmatched", status: 404, mapping: null, turn_id: null });
      expect(stepOf(delivery, "mapping.tried")).toEqual({
        matched: null,
        tried: [
          {
            mapping: "push",
            path: "body.ref",
            expected: ["refs/heads/main", "refs/heads/next"],
            found: "refs/heads/draft",
          },
          { mapping: "alert", path: "body.count", expected: ["100"], found: "99" },
          { mapping: "silent", path: "message", expected: ["some text"], found: null },
        ],
        untold: 0,
      });
    });

    it("that a mapping took tells which, why those before did not, and the message", async () => {
      const { hooks } = gateway;
      const reply = await hooks.mapped({ quiet: "yes", text: "Speak up." });
      expect(await ended(gateway, reply)).toBe("Speak up.");
      const delivery = await deliveryOf(gateway, reply.json.deliveryId);
      expect(delivery).toMatchObject({ outcome: "completed", mapping: "silent", turn_id: reply.json.turnId });
      expect(stepOf(delivery, "mapping.tried")).toMatchObject({
        matched: "silent",
        tried: [
          { mapping: "push", path: "headers.X-GitHub-Event", found: null },
          { mapping: "alert", path: "body.status", found: null },
        ],
      });
      expect(stepOf(delivery, "message.rendered")).toMatchObject({ mapping: "silent", message: "Speak up." });
      expect(delivery.timeline.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["token.accepted", "mapping.tried", "message.rendered", "turn.completed"]),
      );
    });

    it("of a mapping with a session that is another agent's is refused", async () => {
      const { hooks } = gateway;
      const session = "webhook:taken";
      await hooks.agent({ message: "mine", session, agent: "main" });
      await gateway.reload(
        withMappings(
          { taken: { match: { "body.v": "1" }, message: "x", session, agent: "other" }, ...MAPPINGS },
          { agents: AGENTS, gateway: { defaultAgent: "main" } },
        ),
      );
      await gateway.logged("config.reloaded");
      const reply = await hooks.mapped({ v: 1 });
      expect([reply.status, reply.error]).toEqual([409, "session-conflict"]);
    });
  });
});
