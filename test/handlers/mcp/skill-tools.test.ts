import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Agent } from "#core/agents/agents.ts";
import type { McpSettings } from "#core/mcp-tools.ts";
import { skillText } from "#test/harness/skills.ts";
import { ADMIN, CHAT, SECRET, startTools, turnOf } from "./start-tools.ts";

const QUOTE = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  additionalProperties: false,
  required: ["customer"],
  properties: { customer: { type: "string" }, pages: { type: "integer", minimum: 1 } },
};

type Made = {
  agents?: readonly (Partial<Agent> & { name: string })[];
  mcp?: Partial<McpSettings>;
  /** Schemas of params, by the skill that has them. */
  schemas?: Record<string, object>;
  skills?: readonly string[];
};

/** Tools over a core with skills in a folder: `quote`, which declares params, and `summarise`, which does not. */
async function startSkilled({ schemas = { quote: QUOTE }, skills = ["quote", "summarise"], ...options }: Made = {}) {
  const dir = await mkdtemp(join(tmpdir(), "mcp-skills-"));
  const write = async (path: string, text: string) => {
    await mkdir(join(dir, path, ".."), { recursive: true });
    await writeFile(join(dir, path), text);
  };
  for (const name of skills) await write(`${name}/SKILL.md`, skillText(name, `Does ${name} with ${SECRET}`));
  for (const [name, schema] of Object.entries(schemas))
    await write(`${name}/params.schema.json`, JSON.stringify(schema));
  const made = await startTools({ settings: { skillDirs: [dir] }, ...options });
  const close = made[Symbol.asyncDispose];
  return Object.assign(made, {
    dir,
    write,
    async [Symbol.asyncDispose]() {
      await close();
      await rm(dir, { recursive: true });
    },
  });
}

describe("the tool of a skill", () => {
  it("has the name, the description and the params of its skill", async () => {
    await using made = await startSkilled();
    const { description, inputSchema, startsTurn } = await made.tool("quote");
    expect(description).toMatch(/^Does quote with \[hidden\]\. The result is the text of another program/);
    expect(inputSchema).toMatchObject({ ...QUOTE, properties: { ...QUOTE.properties, session: { type: "string" } } });
    expect(startsTurn).toBe(true);
  });

  it("lists a schema that clients of every revision can read, with the same meaning", async () => {
    const quote = {
      type: "object",
      additionalProperties: false,
      properties: {
        a: true,
        b: false,
        region: { type: "string", "x-mcp-header": "Region" },
        "x-mcp-header": { const: { "x-mcp-header": true } },
        list: { items: true, contains: { "x-mcp-header": "Deep" }, prefixItems: [true, false] },
      },
      dependentRequired: { a: ["region"] },
      $defs: { none: false },
    };
    await using made = await startSkilled({ schemas: { quote } });
    expect((await made.tool("quote")).inputSchema).toEqual({
      ...quote,
      properties: {
        a: {},
        b: { not: {} },
        region: { type: "string" },
        "x-mcp-header": { const: { "x-mcp-header": true } },
        list: { items: {}, contains: {}, prefixItems: [{}, { not: {} }] },
      },
      $defs: { none: { not: {} } },
    });
  });

  it("starts a turn of the skill with its params, and answers with the reply", async () => {
    await using made = await startSkilled();
    const answer = made.call("quote", { customer: "Ada", pages: 2 });
    const run = await made.next();
    expect(run.turn.message.text).toBe('/quote {"customer":"Ada","pages":2}');
    expect(run.turn.skills.map(({ skillId }) => skillId)).toEqual(["quote"]);
    made.say(run, "9 euros");
    expect(await answer).toMatchObject({ text: "9 euros", structured: { status: "completed" } });
  });

  it("continues a session", async () => {
    await using made = await startSkilled();
    const first = made.call("quote", { customer: "Ada" });
    made.say(await made.next(), "9 euros");
    const { session_id: session } = turnOf(await first);
    const second = made.call("quote", { customer: "Ada", session });
    const run = await made.next();
    expect(run.turn.message.text).toBe('/quote {"customer":"Ada"}');
    made.say(run, "8 euros");
    expect(turnOf(await second).session_id).toBe(session);
  });

  it("takes any params if the skill declares none", async () => {
    await using made = await startSkilled();
    const answer = made.call("summarise", { params: { a: [1], session: "theirs" } });
    const run = await made.next();
    expect(run.turn.message.text).toBe('/summarise {"a":[1],"session":"theirs"}');
    made.say(run, "done");
    expect((await answer)?.text).toBe("done");
    const none = made.call("summarise");
    const next = await made.next();
    expect(next.turn.message.text).toBe("/summarise {}");
    made.say(next, "done");
    await none;
  });

  it.each([
    ["quote", {}, "customer is required."],
    ["quote", { customer: "Ada", pages: 0 }, "pages must be at least 1."],
    ["quote", { customer: "Ada", page: 1 }, "page is unknown (did you mean pages?)."],
    ["quote", { customer: "Ada", session: 5 }, "session must be a string."],
    ["quote", { customer: "Ada", agent: "main" }, "agent is unknown (there are customer, pages)."],
    ["summarise", { params: 5 }, "params must be an object."],
    ["summarise", { text: "hi" }, "text is unknown (there are params, session)."],
    ["summarise", { agent: "main" }, "agent is unknown (there are params, session)."],
  ])("of %s answers the arguments %j with their fault", async (name, args, words) => {
    await using made = await startSkilled();
    const answer = await made.call(name, args);
    expect(answer).toEqual({ text: `Invalid Request: ${words}`, isError: true, error: "invalid-request" });
  });

  it.each([
    ["an open schema", { type: "object", properties: { customer: {} } }],
    ["a param of this name", { ...QUOTE, properties: { customer: {}, session: { type: "integer" } } }],
    ["patterns of names", { ...QUOTE, patternProperties: { "^s": {} } }],
    ["a combination of schemas", { ...QUOTE, allOf: [{ required: ["pages"] }] }],
  ])("has no session input if it could collide with %s", async (_, quote) => {
    await using made = await startSkilled({ schemas: { quote } });
    const { inputSchema } = await made.tool("quote");
    expect(inputSchema).toEqual(quote);
    const answer = made.call("quote", { customer: "Ada", pages: 1, session: 7 });
    if ((await Promise.race([answer, made.clock.settle()]))?.isError) return;
    const run = await made.next();
    expect(run.turn.message.text).toContain('"session":7');
    made.say(run, "done");
    await answer;
  });

  it("runs with the default agent, with the first that has the skill, or with the one that is asked for", async () => {
    const agents = [
      { name: "main", skills: ["summarise"] },
      { name: "other", skills: ["quote", "summarise"] },
      { name: "third", skills: ["quote"] },
    ];
    await using made = await startSkilled({ agents });
    const agentOf = async (name: string, args: object) => {
      const answer = made.call(name, args);
      const run = await made.next();
      made.say(run, "done");
      await answer;
      return run.turn.agent;
    };
    expect(await agentOf("summarise", {})).toBe("main");
    expect(await agentOf("quote", { customer: "Ada" })).toBe("other");
    expect(await agentOf("quote", { customer: "Ada", agent: "third" })).toBe("third");
    const { properties } = (await made.tool("quote")).inputSchema as { properties: object };
    expect(properties).toMatchObject({ agent: { enum: ["other", "third"] } });
    const refused = await made.call("quote", { customer: "Ada", agent: "main" });
    expect(refused?.text).toBe("Invalid Request: agent must be one of other, third.");
  });
});

describe("the tools of skills", () => {
  it("are those that an agent in reach has", async () => {
    const agents = [
      { name: "main", skills: ["quote"] },
      { name: "other", skills: ["*"] },
    ];
    await using made = await startSkilled({ agents });
    expect(await made.names()).toEqual(["ask_main", "ask_other", "quote", "summarise", "turn_get"]);
    expect(await made.names({ ...CHAT, agents: ["main"] })).toEqual(["ask_main", "quote", "turn_get"]);
    expect(await made.call("summarise", {}, { caller: { ...CHAT, agents: ["main"] } })).toBeUndefined();
    made.settings.agents = ["main"];
    expect(await made.names()).toEqual(["ask_main", "quote", "turn_get"]);
  });

  it("are off with the setting", async () => {
    await using made = await startSkilled({ mcp: { skills: false } });
    expect(await made.names()).toEqual(["ask_main", "turn_get"]);
    expect(await made.call("quote", { customer: "Ada" })).toBeUndefined();
    expect(made.tools.skills.list(CHAT)).toEqual([]);
  });

  it("have another name if a tool of the gateway has theirs", async () => {
    await using made = await startSkilled({ skills: ["usage", "health", "ask"], schemas: {} });
    expect(await made.names()).toEqual(["ask_main", "ask", "skill_health", "skill_usage", "turn_get"]);
  });

  it("follow the folders at a reload", async () => {
    await using made = await startSkilled();
    await made.write("translate/SKILL.md", skillText("translate", "Translates."));
    await rm(join(made.dir, "quote"), { recursive: true });
    await made.core.reloadSkills();
    expect(await made.names()).toEqual(["ask_main", "summarise", "translate", "turn_get"]);
  });
});

describe("the folders of skills", () => {
  const find = (made: Awaited<ReturnType<typeof startSkilled>>, id = "quote") =>
    made.tools.skills.list(ADMIN).find((skill) => skill.id === id);

  it("have their files, without links and without large ones", async () => {
    await using made = await startSkilled();
    await made.write("quote/references/terms.md", "Net 30.");
    await made.write("quote/.env", "TOKEN=1");
    await made.write("quote/.git/config", "[core]");
    await made.write("quote/huge.txt", "x".repeat(256 * 1024 + 1));
    await symlink("/etc/hosts", join(made.dir, "quote/link.txt"));
    await symlink(made.dir, join(made.dir, "quote/up"));
    const files = (await find(made)?.files()) ?? [];
    expect(files.map(({ path }) => path)).toEqual(["SKILL.md", "params.schema.json", "references/terms.md"]);
    expect(files.at(-1)).toMatchObject({ size: 7, modified: expect.any(Number) });
    expect(Buffer.from((await files.at(-1)?.read()) ?? []).toString()).toBe("Net 30.");
  });

  it("do not follow a link that replaced a file", async () => {
    await using made = await startSkilled();
    await made.write("quote/terms.md", "Net 30.");
    const files = (await find(made)?.files()) ?? [];
    await rm(join(made.dir, "quote/terms.md"));
    await symlink("/etc/hosts", join(made.dir, "quote/terms.md"));
    expect(await files.find(({ path }) => path === "terms.md")?.read()).toBeUndefined();
  });

  it("are those of the agents that appear as tools, for keys that may read skills in REST", async () => {
    const agents = [{ name: "main", skills: ["quote"] }, { name: "other" }];
    await using made = await startSkilled({ agents });
    const ids = (caller = ADMIN) => made.tools.skills.list(caller).map(({ id }) => id);
    expect(ids()).toEqual(["quote", "summarise"]);
    expect(ids({ ...ADMIN, scopes: ["console"] })).toEqual(["quote", "summarise"]);
    expect(ids(CHAT)).toEqual([]);
    made.settings.agents = ["main"];
    expect(ids()).toEqual(["quote"]);
  });
});
