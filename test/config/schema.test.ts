// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { load, refusal, withSections } from "./configs.ts";

/** The one line that a section is refused with, without its place. */
const refused = async (sections: object): Promise<string> =>
  (await refusal(withSections(sections))).map((line) => line.replace(/^gateway\.json5:\d+:\d+: /, "")).join("\n");

describe("a key that there is not", () => {
  test("is refused with its place and the key that was meant", async () => {
    expect(await refusal("{ agents: { main: { backend: 'echo' } },\n  webhooks: {\n    tokn: 'x' } }")).toEqual([
      "gateway.json5:3:5: webhooks.tokn is no key of webhooks; did you mean `token`?",
    ]);
    expect(await refusal("agents: { main: { backend: echo } }\ngatewy: {}", { name: "gateway.yaml" })).toEqual([
      "gateway.yaml:2:1: gatewy is no key of the configuration; did you mean `gateway`?",
    ]);
  });

  test("is refused with those that there are, if none is near", async () => {
    expect(await refused({ skills: { colour: 1 } })).toBe("skills.colour is no key of skills; it has dirs.");
  });

  test("is refused inside a choice", async () => {
    expect(await refused({ store: { type: "memory", path: "x" } })).toBe(
      "store.path does not go with the other keys of store: remove it.",
    );
    expect(await refused({ webhooks: { token: [{ valu: "x" }] } })).toBe(
      "webhooks.token[0].value is missing. A secret; `${NAME}` takes it from the environment. Under 16 characters only on loopback, with a warning.\n" +
        "webhooks.token[0].valu is no key of webhooks.token[0]; did you mean `value`?",
    );
  });
});

describe("a value of the wrong kind", () => {
  test.each([
    [{ gateway: { port: "18789" } }, "gateway.port must be a whole number."],
    [{ gateway: { port: 1.5 } }, "gateway.port must be a whole number."],
    [{ gateway: { port: 65536 } }, "gateway.port must be at most 65535."],
    [{ gateway: { port: -1 } }, "gateway.port must be at least 0."],
    [{ gateway: null }, "gateway must be an object."],
    [{ agents: {} }, "agents must not be empty."],
    [{ gateway: { rpc: { auth: { type: "basic" } } } }, "gateway.rpc.auth.type must be `bearer`."],
    [
      { gateway: { listeners: [{ port: 1, surfaces: ["rest", "web"] }] } },
      "gateway.listeners[0].surfaces[1] must be `rest`, `rpc`",
    ],
    [
      { gateway: { listeners: [{ port: 1, surfaces: ["rest", "rest"] }] } },
      "gateway.listeners[0].surfaces holds the same entry twice.",
    ],
    [
      { gateway: { rpc: { auth: { tokens: [{ name: "a", token: "b", permissions: "all" }] } } } },
      'gateway.rpc.auth.tokens[0].permissions must be "*" or a list.',
    ],
    [
      { gateway: { rpc: { auth: { tokens: [{ name: "a", permissions: "*" }] } } } },
      "gateway.rpc.auth.tokens[0].token is missing. A secret;",
    ],
    [{ webhooks: { token: "" } }, "webhooks.token must not be empty."],
    [{ webhooks: { token: 5 } }, "webhooks.token must be text or a list."],
    [
      { webhooks: { token: [{ value: "x", since: "1 March" }] } },
      "webhooks.token[0].since has the wrong form. The day it was put in use.",
    ],
    [
      { webhooks: { path: "hooks" } },
      "webhooks.path has the wrong form. Where webhooks are received. It begins with `/`",
    ],
    [{ webhooks: { path: "/hooks/" } }, "webhooks.path has the wrong form."],
    [
      { webhooks: { mappings: { wake: { match: {}, message: "x" } } } },
      "webhooks.mappings.wake has a name that cannot be. The name of a mapping begins",
    ],
    [
      { webhooks: { mappings: { Push: { match: {}, message: "x" } } } },
      "webhooks.mappings.Push has a name that cannot be.",
    ],
    [
      { webhooks: { mappings: { push: { match: { ref: "x" }, message: "x" } } } },
      "webhooks.mappings.push.match.ref has a name that cannot be. A lookup path is",
    ],
    [
      { webhooks: { mappings: { push: { message: "x" } } } },
      "webhooks.mappings.push.match is missing. What a request must hold",
    ],
    [
      { webhooks: { mappings: { push: { match: {}, message: "x", session: "main" } } } },
      "webhooks.mappings.push.session",
    ],
    [
      { webhooks: { mappings: { push: { match: { "body.a": {} }, message: "x" } } } },
      'webhooks.mappings.push.match["body.a"] must be text, a number, true or false or a list.',
    ],
    [{ agents: { "1st": { backend: "echo" } } }, "agents.1st has a name that cannot be. A name begins with a letter;"],
    [{ agents: { main: {} } }, "agents.main.backend is missing. What answers."],
    [{ agents: { main: { backend: "ehco" } } }, "agents.main.backend must be `echo`, `model`"],
    [
      { agents: { main: { backend: "echo", heartbeat: { every: "30 minutes" } } } },
      "agents.main.heartbeat.every has the wrong form. The pause between two beats, as `30m`",
    ],
    [
      { agents: { main: { backend: "echo", deadline: 5 } } },
      "agents.main.deadline must be text. A span of time: a number and `ms`, `s`, `m`, `h` or `d`.",
    ],
    [{ sessions: { retention: "100000d" } }, "sessions.retention has the wrong form. A span of time"],
    [{ sessions: { retention: "0d" } }, "sessions.retention has the wrong form. A span of time"],
    [{ limits: { storeBytes: "1GB" } }, "limits.storeBytes has the wrong form. A size: a number of bytes, or"],
    [{ limits: { storeBytes: true } }, "limits.storeBytes must be a whole number or text."],
    [{ limits: { storeBytes: 0 } }, "limits.storeBytes must be at least 1."],
    [{ store: { type: "redis" } }, "store.type must be `memory`, `sqlite` or `postgres`."],
    [{ store: { type: "sqlite" } }, "store.path is missing. The file, on a disk of this machine"],
    [{ store: {} }, "store.type must be `memory`, `sqlite` or `postgres`."],
    [{ channels: { ops: { type: "webhook", url: "ftp://x", secret: "y" } } }, "channels.ops.url has the wrong form."],
    [
      { channels: { ops: { type: "webhook", url: "https://x" } } },
      "channels.ops.secret is missing. The secret to sign",
    ],
    [
      { channels: { ops: { type: "slack", url: "https://x", secret: "y" } } },
      "channels.ops.secret does not go with the other keys of channels.ops: remove it.",
    ],
    [{ channels: { ops: { type: "email", url: "https://x" } } }, "channels.ops.type must be `webhook` or `slack`."],
    [
      { webhooks: { mappings: { a: { match: {}, message: "x", verify: { type: "github", secret: [] } } } } },
      "webhooks.mappings.a.verify.secret must not be empty.",
    ],
  ])("%j", async (sections, said) => {
    const line = await refused(sections);
    expect(line.slice(0, said.length)).toBe(said);
    expect(line.split("\n")).toHaveLength(1);
  });
});

test("every mistake is told at once, in the order of the file", async () => {
  const lines = await refusal(
    "{\n agents: { main: { backend: 'x' } },\n gateway: { port: 'y' },\n store: { type: 'z' } }",
  );
  expect(lines.map((line) => line.split(":")[1])).toEqual(["2", "3", "4"]);
});

test("what the schema says is the default is what a configuration without the key has", async () => {
  const { config } = await load(withSections({}));
  expect(config.limits).toEqual({
    turnsPerSession: 100,
    turns: 10_000,
    events: 100_000,
    messagesPerSession: 10_000,
    storeBytes: 2 ** 30,
    webhookBody: 256 * 1024,
    restBody: 2 ** 20,
    rpcBody: 2 ** 20,
  });
  const week = 7 * 86_400_000;
  expect(config.sessions).toEqual({
    retention: 30 * 86_400_000,
    webhookRetention: week,
    eventRetention: week,
    compactAt: 100_000,
  });
  expect(config.recorder).toEqual({ entries: 10_000, bytes: 64 * 2 ** 20, bodies: true });
  expect(config.webhooks).toMatchObject({
    path: "/hooks",
    rateLimit: { maxRequests: 100, windowMs: 60_000 },
    mappings: {},
  });
  expect(config.agents.main).toMatchObject({
    heartbeat: { every: 1_800_000 },
    deadline: 600_000,
    concurrency: 256,
    skills: ["*"],
  });
});

test("every key of the schema says what it is for", () => {
  const silent: string[] = [];
  const visit = (schema: Record<string, unknown>, at: string) => {
    for (const [key, property] of Object.entries(
      (schema.properties ?? {}) as Record<string, Record<string, unknown>>,
    )) {
      if (property.description === undefined && property.$ref === undefined) silent.push(`${at}.${key}`);
      visit(property, `${at}.${key}`);
    }
  };
  const schema = parse(readFileSync("specs/config.schema.yaml", "utf8")) as {
    $defs: Record<string, Record<string, unknown>>;
  };
  visit(schema, "");
  for (const [name, shape] of Object.entries(schema.$defs)) visit(shape, name);
  expect(silent).toEqual([]);
});
