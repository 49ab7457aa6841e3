import { describe, expect, it, test } from "vitest";
import { settle } from "#config/load.ts";
import { unwritten } from "#config/problems.ts";
import { BUILT } from "#gateway/gateway.ts";
import { type SomeConfig, shareGateway } from "#test/harness/gateway.ts";

const AGENTS = {
  main: { backend: "echo", model: "fast" },
  other: { backend: "http", http: { url: "http://127.0.0.1:9/" } },
};
const WEBHOOKS: SomeConfig["webhooks"] = {
  mappings: {
    alert: { match: { "body.status": "firing" }, message: "{body.text}", agent: "main", session: "webhook:alerts" },
  },
};
const CONFIG: SomeConfig = {
  gateway: { defaultAgent: "main", announceTo: "ops" },
  agents: AGENTS as SomeConfig["agents"],
  channels: { ops: { type: "webhook", url: "http://127.0.0.1:9/", secret: "a-secret-of-the-channel" } },
  webhooks: WEBHOOKS,
};
const DRAFT = { name: "incident", match: { "body.status": ["firing", 3] }, message: "{body.title}" };

describe("a dry run of a draft", async () => {
  const gateway = await shareGateway({ config: CONFIG, hidden: ["a-secret-of-the-channel"] });
  const dryRun = (fields: object) => gateway.console.call("mappings.dryRun", { body: { body: {}, ...fields } });

  it("tries only the draft, with the defaults of the configuration", async () => {
    const { json } = await dryRun({ mapping: DRAFT, body: { status: 3, title: "Disk full" }, name: "alert" });
    expect(json).toEqual({
      starts: "incident",
      mappings: [
        {
          mapping: "incident",
          path: "/hooks/incident",
          verify: null,
          matched: true,
          failed: null,
          message: "Disk full",
          turn: {
            agent: "main",
            session_id: null,
            model: "fast",
            channel: null,
            delivery: "none",
            announce_to: null,
            to: null,
            thread: null,
            coalesce: null,
            notes: [],
          },
        },
      ],
    });
  });

  it("uses the draft's agent, session, model, channel and delivery", async () => {
    const mapping = { ...DRAFT, session: "webhook:x", model: "any", channel: "label", delivery: "announce" };
    const { json } = await dryRun({ mapping, body: { status: "firing", title: "Disk full" } });
    expect(json.mappings).toMatchObject([
      { turn: { session_id: "webhook:x", model: "any", channel: "label", delivery: "announce", announce_to: "ops" } },
    ]);
  });

  it("fills in the draft's session, key and address", async () => {
    const mapping = {
      ...DRAFT,
      session: "webhook:incident-{body.id}",
      coalesce: { key: "{body.id}", window: "1m" },
      channel: "ops",
      delivery: "announce",
      to: "{body.to}",
      thread: "{body.ts|body.id}",
    };
    const { json } = await dryRun({ mapping, body: { status: "firing", title: "Disk full", id: "a/1" } });
    expect(json.mappings).toMatchObject([
      {
        turn: {
          session_id: "webhook:incident-a~2f1",
          to: null,
          thread: null,
          coalesce: { key: "a/1", window_ms: 60_000, max_wait_ms: 300_000, take: "last", joins: null },
          notes: ["`to`: {body.to} has no value, so the reply goes to the channel's own address."],
        },
      },
    ]);
    const elsewhere = await dryRun({
      mapping: { ...mapping, channel: "label" },
      body: { status: "firing", title: "x", id: 1 },
    });
    expect(elsewhere.json.mappings).toMatchObject([{ turn: { announce_to: "ops", thread: null } }]);
    const without = await dryRun({ mapping, body: { status: "firing", title: "Disk full", to: "C1\nC2" } });
    expect(without.json.mappings).toMatchObject([
      {
        turn: {
          session_id: null,
          coalesce: null,
          notes: [
            "`to` contains control characters, so the reply goes to the channel's own address.",
            "`session`: {body.id} has no value, so the turn gets a new session.",
            "`coalesce.key`: {body.id} has no value, so the request is not merged with others, and its turn starts at once.",
          ],
        },
      },
    ]);
  });

  it("reports the pair that failed", async () => {
    const { json } = await dryRun({ mapping: DRAFT, body: { status: "resolved" } });
    expect(json).toMatchObject({
      starts: null,
      mappings: [{ failed: { path: "body.status", expected: ["firing", "3"], found: "resolved" } }],
    });
  });

  it("accepts the name of a configured mapping, and its session for another agent", async () => {
    const { status } = await dryRun({
      mapping: { ...DRAFT, name: "alert", session: "webhook:alerts", agent: "other" },
    });
    expect(status).toBe(200);
  });

  const faulty: [string, Record<string, unknown>, string][] = [
    ["a bad template", { message: "{title}" }, "/mapping/message"],
    ["a blank message", { message: "  " }, "/mapping/message"],
    ["an empty message", { message: "" }, "/mapping/message"],
    ["an unknown agent", { agent: "mian" }, "/mapping/agent"],
    ["a model that the agent does not know", { agent: "other", model: "gigantic" }, "/mapping/model"],
    ["a path that is not in a request", { match: { status: "firing" } }, "/mapping/match"],
    ["a path with an empty step", { match: { "body.a..b": "x" } }, "/mapping/match/body.a..b"],
    ["a path with a slash and a tilde", { match: { "body./~.": "x" } }, "/mapping/match"],
    ["the prototype as a step", { match: { "body.__proto__.x": "x" } }, "/mapping/match/body.__proto__.x"],
    ["a secret header", { match: { "headers.authorization": "x" } }, "/mapping/match/headers.authorization"],
    ["two pairs that exclude each other", { match: { "body.a": "x", "body.a.b": "y" } }, "/mapping/match/body.a.b"],
    ["a reserved name", { name: "wake" }, ""],
    ["a name of another form", { name: "Incident 1" }, ""],
    ["a session of another kind", { session: "agent:main:x" }, "/mapping/session"],
    ["a template of a session without a prefix", { session: "webhook:{body.a}" }, "/mapping/session"],
    ["a burst without a key", { coalesce: { key: " " } }, "/mapping/coalesce/key"],
    ["a burst with a wait that is too short", { coalesce: { key: "a", maxWait: "1s" } }, "/mapping/coalesce/maxWait"],
    ["a duration that is not one", { coalesce: { key: "a", window: "soon" } }, "/mapping/coalesce/window"],
    ["an address without a channel", { thread: "{body.ts}" }, "/mapping/thread"],
    ["a session of another agent", { session: "webhook:alerts", agent: "other" }, "/mapping/session"],
  ];
  test.each(faulty)("refuses %s with the sentence of the configuration", async (_, fields, pointer) => {
    const { name, ...mapping } = { ...DRAFT, ...fields } as { name: string };
    const mappings = { ...WEBHOOKS?.mappings, [name]: mapping };
    const load = settle(unwritten({ ...CONFIG, webhooks: { ...WEBHOOKS, token: "x".repeat(20), mappings } }), {
      env: {},
      built: BUILT,
    });
    const refusal = await load.then(
      () => "loaded",
      (error: Error) => error.message,
    );
    const { status, error, json } = await dryRun({ mapping: { name, ...mapping } });
    expect([status, error]).toEqual([400, "invalid-request"]);
    expect(json.detail).toBe(refusal);
    expect((json.errors as { pointer: string }[])[0]?.pointer.startsWith(pointer)).toBe(true);
  });

  test.each([
    ["an unknown field", { verify: { type: "github", secret: "s" } }],
    ["an object as a value", { match: { "body.a": { b: 1 } } }],
    ["too many pairs", { match: Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`body.a${i}`, "x"])) }],
    ["a long value", { match: { "body.a": "x".repeat(1025) } }],
    ["a long value in a list", { match: { "body.a": ["x", "x".repeat(1025)] } }],
    ["a very long path", { match: { [`body.${"a".repeat(600)}`]: "x" } }],
    ["no message", { message: undefined }],
  ])("refuses %s", async (_, fields) => {
    const { status, error } = await dryRun({ mapping: { ...DRAFT, ...fields } });
    expect([status, error]).toEqual([400, "invalid-request"]);
  });

  it("gives the same answer to a right and a wrong guess of a secret", async () => {
    const [right, wrong] = ["a-secret-of-the-ch", "a-secret-of-the-xy"];
    const { json } = await dryRun({ mapping: { ...DRAFT, match: {}, message: `${right}… ${wrong}… other…` } });
    expect(json.mappings).toMatchObject([{ message: "[hidden]… [hidden]… other…" }]);
    for (const guess of [right, wrong]) {
      const { json: missed } = await dryRun({ mapping: DRAFT, body: { status: `${guess}…` } });
      expect(missed.mappings).toMatchObject([{ failed: { found: "[hidden]…" } }]);
    }
  });

  it("does not read the prototype of a match", async () => {
    const mapping = '{"name":"x","match":{"__proto__":"y"},"message":"m"}';
    const { status, json } = await dryRun(JSON.parse(`{"mapping":${mapping}}`));
    expect([status, String(json.detail)]).toEqual([400, expect.stringContaining("__proto__")]);
  });

  it("fills in no variable of the environment", async () => {
    const reference = "$".concat("{PATH}");
    const mapping = { ...DRAFT, match: { "body.a": reference }, message: "{body.a} {{x}" };
    const { json } = await dryRun({ mapping, body: { a: reference } });
    expect(json.mappings).toMatchObject([{ message: `${reference} {x}` }]);
  });
});
