import { describe, expect, test } from "vitest";
import { load, refusal } from "./configs.ts";

const yaml = { name: "gateway.yaml" };

describe("a configuration file", () => {
  test.each([
    ["gateway.json5", "// ours\n{ agents: { main: { backend: 'echo', }, }, }"],
    ["gateway.json", '{ "agents": { "main": { "backend": "echo" } } }'],
    ["gateway.yaml", "agents:\n  main: { backend: echo }"],
    ["gateway.yml", "# ours\nagents:\n  main:\n    backend: echo"],
    ["gateway.json5", "\ufeff{ agents: { main: { backend: 'echo' } } }"],
  ])("is read in the format of its name: %s", async (name, text) => {
    const { config } = await load(text, { name });
    expect(config.agents.main?.backend).toBe("echo");
  });

  test("with another ending is refused with the supported endings", async () => {
    expect(await refusal("", { name: "gateway.toml" })).toEqual([
      "gateway.toml: the file has a name that does not end in .json5, .json, .yaml or .yml: rename it.",
    ]);
  });

  test("that is not UTF-8 is refused", async () => {
    expect(await refusal(Uint8Array.of(0x7b, 0xff, 0x7d))).toEqual([
      "gateway.json5: the file is not UTF-8 text: save it as UTF-8.",
    ]);
  });

  test("that is a folder is refused with the next step", async () => {
    expect(await refusal("", { file: "test" })).toEqual([
      "test: the file cannot be read: it is a folder. Name the file in it.",
    ]);
  });

  test.each([
    ["gateway.json5", "gateway.json5:1:1"],
    ["gateway.yaml", "gateway.yaml:1:1"],
  ])("that is empty lacks its required fields (%s)", async (name, at) => {
    expect(await refusal("\n", { name })).toEqual([
      `${at}: agents is missing. Add at least one, for example \`agents: { main: { backend: "echo" } }\`.`,
    ]);
  });
});

describe("JSON5", () => {
  test.each([
    ["{\n  agents: { main: { backend: 'echo' } }\n  store: {}\n}", "3:3", "`store` was not expected"],
    ["{ agents: }", "1:11", "`}` was not expected"],
    ["{}}", "1:3", "`}` was not expected"],
  ])("with a syntax error is refused at its place: %j", async (text, at, said) => {
    expect(await refusal(text)).toEqual([
      `gateway.json5:${at}: the file is not JSON5: ${said}: look for a missing comma, quote or bracket before it.`,
    ]);
  });

  test.each([
    ["{\n  agents: {\n", "3:1"],
    ["{ agents: { main", "1:17"],
    ["{ agents: { main: [ 1, ", "1:24"],
    ['{ agents: { main: "x', "1:21"],
    ["{ agents: { main: {} }", "1:23"],
  ])("that is cut off is refused at its end: %j", async (text, at) => {
    expect(await refusal(text)).toEqual([
      `gateway.json5:${at}: the file is not JSON5: the text ends too early: close what is open.`,
    ]);
  });

  test("with a key twice is refused at the second", async () => {
    expect(await refusal("{ agents: {},\n  store: { type: 'memory', type: 'memory' },\n  agents: {} }")).toEqual([
      "gateway.json5:2:28: store.type is written twice: keep one of them.",
      "gateway.json5:3:3: agents is written twice: keep one of them.",
    ]);
  });

  test("with __proto__ as a key has no effect but the refusal", async () => {
    const lines = await refusal("{ agents: { main: { backend: 'echo', __proto__: { model: 'x' } } } }");
    expect(lines[0]).toMatch(
      /^gateway\.json5:1:38: agents\.main\.__proto__ is not a key of agents\.main; it has backend, /,
    );
    expect(({} as { model?: string }).model).toBeUndefined();
  });
});

describe("YAML", () => {
  test("with a key twice is refused at the second", async () => {
    expect(await refusal("agents: { main: { backend: echo } }\nstore: { type: memory }\nstore: {}", yaml)).toEqual([
      "gateway.yaml:3:1: this key is written twice: keep one of them.",
    ]);
  });

  test("with a syntax error is refused at its place", async () => {
    const lines = await refusal("agents:\n\tmain: {}", yaml);
    expect(lines[0]).toMatch(/^gateway\.yaml:2:1: the file is not YAML: Tabs are not allowed as indentation\. /);
  });

  test("with several documents is refused", async () => {
    const lines = await refusal("agents: {}\n---\nagents: {}", yaml);
    expect(lines).toEqual(["gateway.yaml:2:1: the file contains several documents: keep one of them."]);
  });

  test("with an undefined anchor is refused", async () => {
    expect((await refusal("agents: *nobody", yaml))[0]).toMatch(
      /^gateway\.yaml:1:1: the file is not YAML: Unresolved alias/,
    );
  });

  test("has an error behind an alias at its own place", async () => {
    const text =
      "agents:\n  main: &it\n    backend: echo\n    deadlin: 3s\n  other: *it\ngateway: { defaultAgent: main }";
    expect(await refusal(text, yaml)).toEqual([
      "gateway.yaml:4:5: agents.main.deadlin is not a key of agents.main; did you mean `deadline`?",
      "gateway.yaml:4:5: agents.other.deadlin is not a key of agents.other; did you mean `deadline`?",
    ]);
  });

  test("reads off and dates as text", async () => {
    const text =
      "agents: { main: { backend: echo, heartbeat: { every: off } } }\n" +
      "webhooks: { token: [{ value: a-good-long-secret, since: 2026-03-01 }] }";
    const { config } = await load(text, yaml);
    expect(config.agents.main?.heartbeat.every).toBeUndefined();
    expect(config.webhooks.token[0]?.since).toBe("2026-03-01");
  });
});

test.each([
  ["gateway.yaml", "agents: { main: { backend: echo } }\nwebhooks:\n  token: *SECRET\n"],
  ["gateway.yaml", "agents: { main: { backend: echo } }\nwebhooks:\n  token: !SECRET x\n"],
  ["gateway.yaml", 'agents: { main: { backend: echo } }\nwebhooks:\n  token: "a" SECRET\n'],
  ["gateway.yaml", "agents: { main: { backend: echo } }\nwebhooks: SECRET\n"],
  ["gateway.json5", '{ agents: { main: { backend: "echo" } }, webhooks: { token: SECRET } }'],
  ["gateway.json5", '{ agents: { main: { backend: "echo" } }, webhooks: { token: "a" "SECRET" } }'],
  ["gateway.json5", '{ agents: { main: { backend: "echo" } }, webhooks: { path: "SECRET", token: ["SECRET", 7] } }'],
  ["gateway.json", '{ "agents": { "main": { "backend": "SECRET" } }, "store": "SECRET" }'],
])("a refused configuration is not repeated in the error: %s %j", async (name, text) => {
  const said = (await refusal(text.replaceAll("SECRET", "secret-in-a-broken-file"), { name })).join("\n");
  expect(said).toContain(`${name}:`);
  expect(said).not.toContain("secret-in-a-broken-file");
});
