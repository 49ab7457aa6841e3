import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { SUMMARISE, skillsFolder, skillText } from "#test/harness/skills.ts";

const dir = skillsFolder({
  ...SUMMARISE,
  translate: skillText(
    "translate",
    "Translates.",
    "license: MIT",
    "allowed-tools: Read Bash(git:*)",
    "metadata:",
    "  version: 2",
  ),
  broken: "no front matter at all",
  misnamed: skillText("another-name", "Its folder is called otherwise."),
});
const gateway = await shareGateway({
  config: {
    skills: { dirs: [dir] },
    agents: { main: { backend: "echo" }, narrow: { backend: "echo", skills: ["translate"] } },
    gateway: { defaultAgent: "main" },
  },
});

describe("the list of skills", () => {
  test("has every valid skill by its id, with the agents that have it, and the fields of its file", async () => {
    const { json } = await gateway.rest.call("skills.list");
    expect(json.skills).toEqual([
      {
        skill_id: "summarise-thread",
        name: "summarise-thread",
        description: "Summarises a long conversation. Use it when someone asks what happened so far.",
        agents: ["main"],
      },
      {
        skill_id: "translate",
        name: "translate",
        description: "Translates.",
        agents: ["main", "narrow"],
        license: "MIT",
        allowed_tools: ["Read", "Bash(git:*)"],
        metadata: { version: "2" },
      },
    ]);
  });

  test("omits invalid skills, and the log has the reason", async () => {
    const refused = gateway.logs.filter(({ event }) => event === "skill.refused");
    expect(refused.map(({ skill }) => String(skill).split("/").at(-1))).toEqual(["broken", "misnamed"]);
  });

  test("has the folders without a valid skill, with the reason", async () => {
    const { json } = await gateway.rest.call("skills.list");
    const within = basename(dir);
    expect(json.invalid).toEqual([
      {
        folder: "broken",
        path: `${within}/broken`,
        reason: "SKILL.md does not begin with a front matter between two lines of ---",
      },
      {
        folder: "misnamed",
        path: `${within}/misnamed`,
        reason: "name is another-name, but the folder is misnamed",
      },
    ]);
  });

  test("has no instructions, and shows no path of this machine", async () => {
    const { text } = await gateway.rest.call("skills.list");
    expect(text).not.toContain(dir);
    expect(text).not.toContain("How to translate");
  });
});

describe("a single skill", () => {
  const read = (skill_id: string) => gateway.console.call("skills.get", { path: { skill_id } });

  test("is the one of the list, with the text of its SKILL.md", async () => {
    const { json: list } = await gateway.rest.call("skills.list");
    const { json } = await read("translate");
    expect(json).toEqual({ ...(list.skills as object[])[1], instructions: "How to translate." });
  });

  test.each([
    ["trans-late", "There is no skill `trans-late`. Did you mean `translate`?"],
    [
      "broken",
      "The skill `broken` is not valid: SKILL.md does not begin with a front matter between two lines of ---.",
    ],
    ["__proto__", "There is no skill `__proto__`. There are `summarise-thread`, `translate`."],
    ["../broken", "There is no skill `../broken`. There are `summarise-thread`, `translate`."],
  ])("is 404 with the reason: %s", async (skill_id, detail) => {
    const { error, problem } = await read(skill_id);
    expect([error, problem.detail]).toEqual(["skill-not-found", detail]);
  });

  test("does not exist if another path has its name", async () => {
    expect((await read("list")).json).toHaveProperty("invalid");
    expect((await read("trigger")).error).toBe("method-not-allowed");
  });
});

describe("a skill that is triggered", () => {
  test.each([
    [{}, "/summarise-thread {}"],
    [{ params: { length: "short" } }, '/summarise-thread {"length":"short"}'],
    [{ params: { deep: { list: [1, null, "é"] } } }, '/summarise-thread {"deep":{"list":[1,null,"é"]}}'],
    [{ params: JSON.parse('{"__proto__":{"polluted":true}}') }, '/summarise-thread {"__proto__":{"polluted":true}}'],
  ])("gets its params as JSON: %j", async (fields, reply) => {
    const { json } = await gateway.rest.call("skills.trigger", { body: { skill_id: "summarise-thread", ...fields } });
    expect(json).toMatchObject({ status: "completed", reply });
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
  });

  test("is 202 if its turn takes longer than the call waits", async () => {
    await using waits = await startGateway({
      config: { skills: { dirs: [dir] } },
      makeBackend: () => createPuppet().backend,
      replyWaitMs: 30,
    });
    const { status, json } = await waits.rest.call("skills.trigger", { body: { skill_id: "translate" } });
    expect([status, json.status]).toEqual([202, "running"]);
  });

  test("streams like a message", async () => {
    const { all } = await gateway.rest.stream("skills.trigger", { body: { skill_id: "translate" } });
    expect((await all()).at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "/translate {}" } });
  });

  test.each([
    ["skills.trigger", { skill_id: "no-such-skill" }],
    ["skills.trigger", { skill_id: "summarise-thread", agent: "narrow" }],
    ["chat.send", { message: "hi", skill_ids: ["translate", "no-such-skill"] }],
    ["chat.send", { message: "hi", skill_ids: ["summarise-thread"], agent: "narrow" }],
  ] as const)("is 404 by its name if the agent does not have it: %s %j", async (operation, body) => {
    const reply = await gateway.rest.call(operation, { body });
    const named = "skill_id" in body ? body.skill_id : body.skill_ids.at(-1);
    expect([reply.error, reply.problem.detail?.includes(String(named))]).toEqual(["skill-not-found", true]);
  });
});

test("the instructions of each skill of a message reach the backend with it", async () => {
  const puppet = createPuppet();
  await using played = await startGateway({ config: { skills: { dirs: [dir] } }, makeBackend: () => puppet.backend });
  const skill_ids = ["translate", "summarise-thread"];
  const sent = played.rest.call("chat.send", { body: { message: "hi", skill_ids } });
  const { turn, end } = await puppet.next();
  end();
  await sent;
  expect(turn.skills).toEqual(skill_ids.map((skillId) => ({ skillId, body: `How to ${skillId}.` })));
  expect(turn.message.text).toBe("hi");
});
