import { describe, expect, test } from "vitest";
import { mcpTools } from "#generated/mcp-tools.ts";
import { type SomeConfig, shareGateway } from "#test/harness/gateway.ts";
import { openMcp } from "#test/harness/mcp.ts";
import { skillsFolder } from "#test/harness/skills.ts";
import { configOf, FULL, LIMITED, SKILLS, seed } from "./limited.ts";

const folder = skillsFolder(SKILLS);
type Operator = false | "read" | "write";
function configFor(operator: Operator): SomeConfig {
  const base = configOf(["a"], { skills: { dirs: [folder] } });
  return { ...base, gateway: { ...base.gateway, mcp: { enabled: true, operator } } };
}
const [off, read, write] = await Promise.all(
  ([false, "read", "write"] as const).map((operator) => shareGateway({ config: configFor(operator) })),
);
const gateways = { off, read, write } as Record<"off" | "read" | "write", NonNullable<typeof off>>;
const { adminKey, consoleToken } = gateways.write;

const OPERATOR = mcpTools.filter(({ scope }) => scope === "admin");
const READING = OPERATOR.filter(({ hint }) => hint === "read");
function namesOf(tools: readonly { name: string }[]): string[] {
  return tools.map(({ name }) => name);
}
const OF_A = ["ask_a", "of-a", "shared"];
const OF_ALL = ["ask_a", "ask_b", "of-a", "of-b", "shared"];

describe("the listed tools", () => {
  test.each([
    ["a key with agents", LIMITED.key, OF_A, "off", []],
    ["a key with agents", LIMITED.key, OF_A, "write", []],
    ["a key with the scope chat", FULL.key, OF_ALL, "off", []],
    ["a key with the scope chat", FULL.key, OF_ALL, "read", []],
    ["a key with the scope chat", FULL.key, OF_ALL, "write", []],
    ["a key with the scope admin", adminKey, OF_ALL, "off", []],
    ["a key with the scope admin", adminKey, OF_ALL, "read", namesOf(READING)],
    ["a key with the scope admin", adminKey, OF_ALL, "write", namesOf(OPERATOR)],
    ["the console's token", consoleToken, OF_ALL, "off", []],
    ["the console's token", consoleToken, OF_ALL, "read", namesOf(READING)],
    ["the console's token", consoleToken, OF_ALL, "write", namesOf(OPERATOR)],
  ] as const)("of %s (%#)", async (_, key, ofAgents, operator, ofOperators) => {
    await using client = await openMcp(gateways[operator], key);
    const names = namesOf(await client.tools());
    expect(names.toSorted()).toEqual([...ofAgents, "turn_get", ...ofOperators].toSorted());
  });
});

describe("a tool for operators", () => {
  const named = OPERATOR.map((tool) => [tool.name, tool] as const);

  test.each(named)("%s is refused to a key with the scope chat, as REST does", async (name) => {
    for (const key of [LIMITED.key, FULL.key]) {
      const inRest = await gateways.write.rest.call("turns.list", { key });
      await using client = await openMcp(gateways.write, key);
      const { refused, text } = await client.call(name);
      expect([refused, text]).toEqual([inRest.error, `${inRest.problem.title}: ${inRest.problem.detail}`]);
    }
  });

  test.each(named)("%s is allowed for a key with the scope admin, and for the console's token", async (name) => {
    for (const key of [adminKey, consoleToken]) {
      await using client = await openMcp(gateways.write, key);
      expect((await client.call(name)).refused).toBeUndefined();
    }
  });

  test.each(named)("%s is refused with `operator: read` if it does not only read", async (name, { hint }) => {
    await using client = await openMcp(gateways.read, adminKey);
    expect((await client.call(name)).refused).toBe(hint === "read" ? undefined : "forbidden");
  });

  test.each(named)("%s does not exist without `operator`", async (name) => {
    await using client = await openMcp(gateways.off, adminKey);
    const [tool, unknown] = [await client.call(name), await client.call("not_a_tool")];
    expect(tool.text).toBe(unknown.text.replace("not_a_tool", name));
  });
});

describe("turn_get", () => {
  test.each([
    ["a key with agents", LIMITED.key, { a: "completed", b: "turn-not-found", zz: "turn-not-found" }],
    ["a key with the scope chat", FULL.key, { a: "completed", b: "completed", zz: "turn-not-found" }],
    ["a key with the scope admin", adminKey, { a: "completed", b: "completed", zz: "turn-not-found" }],
    ["the console's token", consoleToken, { a: "completed", b: "completed", zz: "turn-not-found" }],
  ])("reads for %s what REST does", async (_, key, outcomes) => {
    const turns = await seed(gateways.write);
    await using client = await openMcp(gateways.write, key);
    for (const [agent, outcome] of Object.entries(outcomes)) {
      const { turn_id } = turns[agent as keyof typeof turns];
      const inRest = await gateways.write.rest.call("turns.get", { key, path: { turn_id } });
      const { structured, isError, text } = await client.call("turn_get", { turn_id });
      expect(inRest.error ?? inRest.json.status).toBe(outcome);
      if (inRest.error === undefined) expect(structured).toEqual(inRest.json);
      else expect([isError, text]).toEqual([true, `${inRest.problem.title}: ${inRest.problem.detail}`]);
    }
  });

  test("MUST refuse a turn of another agent in the words for one that does not exist", async () => {
    const { b, zz } = await seed(gateways.write);
    await using client = await openMcp(gateways.write, LIMITED.key);
    const wordsFor = async ({ turn_id }: { turn_id: string }) =>
      (await client.call("turn_get", { turn_id })).text.replaceAll(turn_id, "turn");
    expect(await wordsFor(b)).toBe(await wordsFor(zz));
  });
});

test("MUST answer a call of another agent's tool or skill as one of a tool that does not exist", async () => {
  await using client = await openMcp(gateways.write, LIMITED.key);
  const { refused, text } = await client.call("ask_zz", { message: "hi" });
  for (const name of ["ask_b", "of-b", "of-none"]) {
    expect(await client.call(name, { message: "hi" })).toEqual({ refused, text: text.replace("ask_zz", name) });
  }
});
