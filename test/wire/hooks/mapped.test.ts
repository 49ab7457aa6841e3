import { describe, expect, it } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { hookTransports } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";

type Mappings = NonNullable<NonNullable<SomeConfig["webhooks"]>["mappings"]>;
function withMappings(mappings: Mappings, more: SomeConfig = {}): SomeConfig {
  return {
    ...more,
    webhooks: { mappings, ...more.webhooks },
  };
}

async function ended({ rest }: TestGateway, { json }: Reply) {
  const events = await (await rest.stream("turns.events", { path: { turn_id: String(json.turnId) } })).all();
  return events.at(-1)?.data.reply;
}

type Step = { name: string; detail: Record<string, unknown> | null };
async function deliveryOf({ console }: TestGateway, deliveryId: unknown) {
  const { json } = await console.call("deliveries.get", { path: { delivery_id: String(deliveryId) } });
  return json as { outcome: string; status: number | null; mapping: string | null; timeline: Step[] };
}
function stepOf({ timeline }: { timeline: Step[] }, name: string) {
  return timeline.find((step) => step.name === name)?.detail;
}

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
    it("starts the turn of the first mapping that matches, and returns the resolved settings", async () => {
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

    it("reaches the agent in the form of the template, and is stored as text from outside", async () => {
      const { hooks, gateway: inner } = gateway;
      const reply = await hooks.mapped(MAIN, PUSH);
      expect(await ended(gateway, reply)).toBe("ada pushed c0ffee (push)");
      const entries = await inner.store.readEntries("webhook:github", { after: 0, limit: 10 });
      expect(entries.find(({ name }) => name === "message.created")).toMatchObject({
        text: "ada pushed c0ffee (push)",
        outside: true,
      });
    });

    it("has its numbers and flags compared in their JSON form, and objects filled in as JSON", async () => {
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

    it("gets its own session if the mapping names none", async () => {
      const { hooks } = gateway;
      const alert = { status: "firing", count: 100, loud: true, labels: {} };
      const [one, two] = [await hooks.mapped(alert), await hooks.mapped(alert)];
      for (const { json } of [one, two]) expect(json.sessionId).toMatch(/^webhook:[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(one.json.sessionId).not.toBe(two.json.sessionId);
    });

    it("that no mapping matches is 404, and its timeline has the reason for each mapping", async () => {
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

    it("that a mapping matched has the mapping, the reasons of the earlier ones, and the message on its timeline", async () => {
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

    it("is refused if its mapping names a session of another agent", async () => {
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

describe("a payload with a mapping's name", async () => {
  const gateway = await shareGateway({
    config: withMappings({
      everything: { match: {}, message: "{body.text}" },
      ci: { match: { "body.status": "failed" }, message: "{body.job} failed", session: "webhook:ci" },
      signed: { match: {}, message: "x", verify: { type: "github", secret: "a-secret-of-a-sender" } },
    }),
  });

  it("is compared with only that mapping", async () => {
    const { hooks } = gateway;
    const reply = await hooks.named("ci", { status: "failed", job: "build" });
    expect(reply.json).toMatchObject({ mapping: "ci", sessionId: "webhook:ci", message: "turn started" });
    expect(await ended(gateway, reply)).toBe("build failed");
  });

  it("that does not match is 200 and starts nothing, because senders disable an address that fails", async () => {
    const { hooks, gateway: inner } = gateway;
    const before = inner.store.stats().sessions;
    const reply = await hooks.named("ci", { status: "passed" });
    expect([reply.status, reply.json]).toEqual([
      200,
      { status: 200, message: "no mapping matched", deliveryId: expect.stringMatching(/^dlv_/) },
    ]);
    expect(inner.store.stats().sessions).toBe(before);
    const delivery = await deliveryOf(gateway, reply.json.deliveryId);
    expect(delivery).toMatchObject({
      outcome: "unmatched",
      status: 200,
      mapping: "ci",
      turn_id: null,
      session_id: null,
    });
    expect(stepOf(delivery, "mapping.tried")).toEqual({
      matched: null,
      tried: [{ mapping: "ci", path: "body.status", expected: ["failed"], found: "passed" }],
      untold: 0,
    });
  });

  it("with an empty message calls no agent", async () => {
    const { hooks } = gateway;
    for (const body of [{}, { text: null }, { text: " \n" }, []]) {
      const { json } = await hooks.named("everything", body);
      expect(json).toMatchObject({ message: "no mapping matched" });
      const delivery = await deliveryOf(gateway, json.deliveryId);
      expect(stepOf(delivery, "mapping.tried")).toMatchObject({ tried: [{ path: "message", found: null }] });
    }
  });

  it("of an unknown mapping is 404, with the shared token only", async () => {
    const { hooks } = gateway;
    const reply = await hooks.named("nothing", {});
    expect([reply.status, reply.error, reply.problem.detail]).toEqual([
      404,
      "mapping-not-found",
      expect.stringMatching(/^No mapping is named `nothing`\. There are `/),
    ]);
    expect((await hooks.named("nothing", {}, { token: null })).status).toBe(401);
    for (const name of ["constructor", "__proto__", "everything/x", "Everything", "everything "])
      expect((await hooks.send(`/${encodeURI(name)}`, {})).status).toBe(404);
  });
});

it("with a message that would be too long is refused, and can be read in the recorder", async () => {
  await using gateway = await startGateway({
    config: withMappings({ long: { match: {}, message: "{body.text}".repeat(5) } }),
  });
  const fits = await gateway.hooks.named("long", { text: "x".repeat(200_000) });
  expect(fits.status).toBe(200);
  const reply = await gateway.hooks.named("long", { text: "x".repeat(250_000) });
  expect([reply.status, reply.error, reply.problem.detail]).toEqual([
    413,
    "too-large",
    "The message of the mapping long has more than 1048576 characters.",
  ]);
  const { json } = await gateway.console.call("deliveries.list", { query: { outcome: "refused" } });
  expect(json.deliveries).toMatchObject([{ status: 413, mapping: "long" }]);
});

it("for a session with a full queue is refused, and nothing of it is stored", async () => {
  const { backend, next } = createPuppet();
  await using gateway = await startGateway({
    makeBackend: () => backend,
    config: withMappings(
      { ci: { match: {}, message: "x", session: "webhook:ci" } },
      { limits: { turnsPerSession: 2 } },
    ),
  });
  const replies = [];
  // One turn runs, and two wait.
  for (let n = 0; n < 4; n++) replies.push(await gateway.hooks.named("ci", {}));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(replies[3]?.error).toBe("session-busy");
  expect(replies[3]?.headers.get("retry-after")).toMatch(/^\d+$/);
  for (let n = 0; n < 3; n++) (await next()).end();
});

it("a reload replaces mappings together with their agents, and refuses invalid ones", async () => {
  const config = (mappings: Mappings, names: string[]): SomeConfig =>
    withMappings(mappings, {
      agents: Object.fromEntries(names.map((name) => [name, { backend: "echo" }])),
      gateway: { defaultAgent: "main" },
    });
  await using gateway = await startGateway({ config: config({ one: { match: {}, message: "first" } }, ["main"]) });
  expect((await gateway.hooks.named("one", {})).json).toMatchObject({ agent: "main" });
  await expect(gateway.reload(config({ one: { match: {}, message: "{foo}" } }, ["main"]))).rejects.toThrow(
    "webhooks.mappings.one.message holds `{foo}`",
  );
  expect((await gateway.hooks.named("one", {})).status).toBe(200);
  await gateway.reload(config({ two: { match: {}, message: "second", agent: "late" } }, ["main", "late"]));
  await gateway.logged("config.reloaded");
  const reply = await gateway.hooks.mapped({});
  expect(reply.json).toMatchObject({ mapping: "two", agent: "late" });
  expect(await ended(gateway, reply)).toBe("second");
  expect((await gateway.hooks.named("one", {})).status).toBe(404);
});

it("a mapping that a reload adds exists as soon as the token that was added with it", async () => {
  const names = Array.from({ length: 100 }, (_, n) => `skill-${n}`);
  const dirs = [skillsFolder(Object.fromEntries(names.map((name) => [name, skillText(name, "Does it.")])))];
  const config = (mappings: Mappings, token: string): SomeConfig => {
    const { webhooks, ...rest } = withMappings(mappings, { skills: { dirs } });
    return { ...rest, webhooks: { ...webhooks, token } };
  };
  await using gateway = await startGateway({ config: config({}, "the-old-webhook-token") });
  const reloading = gateway.reload(config({ late: { match: {}, message: "x" } }, "the-new-webhook-token"));
  let status = 401;
  while (status === 401) ({ status } = await gateway.hooks.named("late", {}, { token: "the-new-webhook-token" }));
  expect(status).toBe(200);
  await reloading;
});
