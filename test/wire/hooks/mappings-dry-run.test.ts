import { describe, expect, it, test } from "vitest";
import { type SomeConfig, shareGateway, startGateway } from "#test/harness/gateway.ts";

const CONFIG: SomeConfig = {
  gateway: { defaultAgent: "main", announceTo: "ops" },
  agents: { main: { backend: "echo", model: "fast" }, other: { backend: "echo" } },
  channels: {
    ops: { type: "webhook", url: "http://127.0.0.1:9/", secret: "a-secret-of-the-channel" },
    dev: { type: "webhook", url: "http://127.0.0.1:9/", secret: "a-secret-of-another-one" },
  },
  webhooks: {
    mappings: {
      "github-push": {
        match: { "headers.x-github-event": "push", "body.ref": ["refs/heads/main", "refs/heads/next"] },
        message: "{body.pusher.name} pushed {body.head_commit.message}",
        session: "webhook:github",
        delivery: "announce",
        verify: { type: "github", secret: "a-secret-of-a-sender" },
      },
      alert: {
        match: { "body.status": "firing" },
        message: "{body.text}",
        agent: "other",
        model: "deep",
        channel: "dev",
        delivery: "announce",
      },
      rest: {
        match: {},
        message: "{body.text}{body.text}{body.text}{body.text}{body.text}{body.text}",
        channel: "a label",
      },
    },
  },
};
const NO_PLACES = { to: null, thread: null, coalesce: null, notes: [] };
const PUSH = { ref: "refs/heads/main", pusher: { name: "ada" }, head_commit: { message: "Mend the clock" } };

describe("a dry run", async () => {
  const shared = await shareGateway({ config: CONFIG });
  const dryRun = async (body: object) => {
    const { rest, adminKey } = shared;
    return rest.call("mappings.dryRun", { body, key: adminKey });
  };

  it("shows for each mapping, in order, what it would do with the request", async () => {
    const { status, json } = await dryRun({ headers: { "X-GitHub-Event": "push" }, body: { ...PUSH, text: "Hm." } });
    expect(status).toBe(200);
    expect(json).toEqual({
      starts: "rest",
      mappings: [
        {
          mapping: "github-push",
          path: "/hooks/github-push",
          verify: "github",
          matched: true,
          failed: null,
          message: "ada pushed Mend the clock",
          turn: {
            agent: "main",
            session_id: "webhook:github",
            model: "fast",
            channel: null,
            delivery: "announce",
            announce_to: "ops",
            ...NO_PLACES,
          },
        },
        {
          mapping: "alert",
          path: "/hooks/alert",
          verify: null,
          matched: false,
          failed: { path: "body.status", expected: ["firing"], found: null },
          message: null,
          turn: null,
        },
        {
          mapping: "rest",
          path: "/hooks/rest",
          verify: null,
          matched: true,
          failed: null,
          message: "Hm.Hm.Hm.Hm.Hm.Hm.",
          turn: {
            agent: "main",
            session_id: null,
            model: "fast",
            channel: "a label",
            delivery: "none",
            announce_to: null,
            ...NO_PLACES,
          },
        },
      ],
    });
  });

  it("for one mapping shows only that one, with the pair that failed and the found value", async () => {
    const failing = await dryRun({ name: "github-push", headers: { "x-github-event": "ping" }, body: PUSH });
    expect(failing.json).toEqual({
      starts: null,
      mappings: [
        expect.objectContaining({
          matched: false,
          failed: { path: "headers.x-github-event", expected: ["push"], found: "ping" },
        }),
      ],
    });
    const other = await dryRun({
      name: "github-push",
      headers: { "x-github-event": "push" },
      body: { ...PUSH, ref: { name: "refs/heads/main" } },
    });
    expect(other.json.mappings).toMatchObject([{ failed: { path: "body.ref", found: "{name}" } }]);
    const taken = await dryRun({ name: "github-push", headers: { "X-GITHUB-EVENT": "push" }, body: PUSH });
    expect(taken.json).toMatchObject({ starts: "github-push", mappings: [{ matched: true }] });
  });

  it("shows the target of a turn", async () => {
    const { json } = await dryRun({ body: { status: "firing", text: "Fire." } });
    expect(json).toMatchObject({
      starts: "alert",
      mappings: [{}, { turn: { agent: "other", model: "deep", channel: "dev", announce_to: "dev" } }, {}],
    });
  });

  it("reports a message that is empty or too long", async () => {
    expect((await dryRun({ body: [] })).json).toMatchObject({
      starts: null,
      mappings: [{}, {}, { failed: { path: "message", expected: ["some text"], found: null } }],
    });
    expect((await dryRun({ body: { text: "x".repeat(200_000) } })).json).toMatchObject({
      starts: null,
      mappings: [{}, {}, { failed: { path: "message", expected: ["at most 1048576 characters"], found: "more" } }],
    });
  });

  it("starts nothing and records nothing", async () => {
    const { gateway } = shared;
    const before = gateway.store.stats();
    expect((await dryRun({ body: { status: "firing", text: "Fire." } })).json.starts).toBe("alert");
    const { sessions, turnsQueued, turnsRunning, deliveries } = gateway.store.stats();
    expect([sessions, turnsQueued, turnsRunning, deliveries]).toEqual([
      before.sessions,
      before.turnsQueued,
      before.turnsRunning,
      before.deliveries,
    ]);
  });

  it("for a mapping that does not exist is 404", async () => {
    for (const name of ["nothing", "constructor"]) {
      const { status, error } = await dryRun({ name, body: {} });
      expect([status, error]).toEqual([404, "mapping-not-found"]);
    }
  });

  test.each([
    ["no body", { headers: {} }],
    ["a body that no webhook has", { body: "text" }],
    ["headers that are not texts", { headers: { "x-a": 1 }, body: {} }],
    ["an unknown field", { body: {}, more: 1 }],
  ])("with %s is refused", async (_, body) => {
    const { status, error } = await dryRun(body);
    expect([status, error]).toEqual([400, "invalid-request"]);
  });

  it("reads no more of a hostile request than a webhook does", async () => {
    const { rest, adminKey } = shared;
    const body = '{"headers":{"__proto__":"x","constructor":"y"},"body":{"__proto__":{"status":"firing"}}}';
    const { json } = await rest.call("mappings.dryRun", { body, key: adminKey });
    expect(json).toMatchObject({
      starts: null,
      mappings: [{ failed: { found: null } }, { failed: { found: null } }, {}],
    });
  });
});

it("a dry run shows the path of webhooks, and works while they are off", async () => {
  await using gateway = await startGateway({
    config: { webhooks: { enabled: false, path: "/in/coming", mappings: { all: { match: {}, message: "x" } } } },
  });
  const { json } = await gateway.console.call("mappings.dryRun", { body: { body: {} } });
  expect(json).toMatchObject({ starts: "all", mappings: [{ path: "/in/coming/all", turn: { announce_to: null } }] });
});
