import { createHash } from "node:crypto";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { describe, expect, test } from "vitest";
import type { McpSkill } from "#core/mcp-tools.ts";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { call, fakeTools, LEGACY, MODERN, OPEN, openClient } from "./clients.ts";

const CHAT = "a-key-with-the-scope-chat";
const MARKDOWN = "# Terms\r\nNet 30, Grüße.\n";
const IMAGE = Buffer.from([0x89, 0x50, 0, 1, 0xff]);

/** A gateway with the skills `quote`, which has several files, and `translate`, which only the agent `narrow` has. */
async function start(mcp: object = {}) {
  const dir = skillsFolder({
    quote: skillText("quote", "Writes a quote."),
    translate: skillText("translate", "Translates."),
  });
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(join(dir, path, ".."), { recursive: true });
    writeFileSync(join(dir, path), content);
  };
  write("quote/references/terms of sale.md", MARKDOWN);
  write("quote/assets/logo.png", IMAGE);
  write("quote/data.json", '{"a":1}');
  write("quote/.env", "TOKEN=1");
  symlinkSync("/etc/hosts", join(dir, "quote/link.txt"));
  const keys = [
    { name: "tests", key: SECRETS.key, scopes: ["chat" as const, "admin" as const] },
    { name: "chat", key: CHAT },
  ];
  const gateway = await startGateway({
    config: {
      gateway: { defaultAgent: "main", mcp: { ...OPEN.mcp, ...mcp }, rest: { auth: { keys } } },
      agents: { main: { backend: "echo", skills: ["quote"] }, narrow: { backend: "echo", skills: ["translate"] } },
      skills: { dirs: [dir] },
    },
  });
  return Object.assign(gateway, { dir, write });
}

describe("the skills extension", () => {
  test.each([MODERN, LEGACY] as const)(
    "serves skills to the official client of %s, which verifies each file",
    async (revision) => {
      await using gateway = await start();
      const skills = new SkillsClient(await openClient(gateway.url, { revision }));
      const { skills: found } = await skills.list();
      expect(found.map(({ uri }) => uri)).toEqual(["skill://quote/SKILL.md", "skill://translate/SKILL.md"]);
      const [quote] = found;
      if (!quote) throw new Error("no skill");
      expect(await skills.read(quote)).toMatchObject({
        body: "How to quote.\n",
        mimeType: "text/markdown",
        verified: true,
      });
      const terms = await skills.read(quote, "references/terms of sale.md");
      expect(terms).toMatchObject({ text: MARKDOWN, mimeType: "text/markdown", verified: true });
      const logo = await skills.read(quote, "assets/logo.png");
      expect(Buffer.from(logo.bytes)).toEqual(IMAGE);
      expect(logo.text).toBeUndefined();
      expect(await skills.read(quote, "data.json")).toMatchObject({ mimeType: "application/json" });
      await expect(skills.read(quote, "link.txt")).rejects.toThrow("link.txt");
      await expect(skills.read(quote, ".env")).rejects.toThrow(".env");
    },
  );

  test("has the instructions of each skill in the list of resources, for clients that do not know it", async () => {
    await using gateway = await start();
    const client = await openClient(gateway.url);
    const { resources } = await client.listResources();
    expect(resources).toMatchObject([
      { uri: "skill://quote/SKILL.md", name: "quote", description: "Writes a quote.", mimeType: "text/markdown" },
      { uri: "skill://translate/SKILL.md", name: "translate" },
    ]);
  });

  test("follows a changed file at once, and the folders at a reload", async () => {
    await using gateway = await start();
    const skills = new SkillsClient(await openClient(gateway.url));
    gateway.write("quote/data.json", '{"a":2,"b":3}');
    const { skill } = await skills.get("skill://quote/SKILL.md");
    expect((await skills.read(skill, "data.json")).text).toBe('{"a":2,"b":3}');
    rmSync(join(gateway.dir, "quote"), { recursive: true });
    await createRpc(gateway.url, SECRETS.rpcToken).call("system.reload");
    expect((await skills.list()).skills.map(({ uri }) => uri)).toEqual(["skill://translate/SKILL.md"]);
  });

  test("has only the skills of the agents that appear as tools", async () => {
    await using gateway = await start({ agents: ["narrow"] });
    const skills = new SkillsClient(await openClient(gateway.url));
    expect((await skills.list()).skills.map(({ uri }) => uri)).toEqual(["skill://translate/SKILL.md"]);
    await expect(skills.get("skill://quote/SKILL.md")).rejects.toThrow("No skill is served");
  });

  test("is not declared for a key that may not read skills in REST, which has their tools", async () => {
    await using gateway = await start();
    const client = await openClient(gateway.url, { key: CHAT });
    expect(new SkillsClient(client).supported).toBe(false);
    expect(client.getServerCapabilities()?.resources).toBeUndefined();
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("quote");
    const uri = "skill://quote/SKILL.md";
    for (const [method, params] of [
      ["resources/read", { uri }],
      ["skills/list", {}],
      ["skills/get", { uri }],
    ] as const) {
      const headers: Record<string, string> = "uri" in params ? { "mcp-name": uri } : {};
      const { json } = await call(gateway.url, method, params, { key: CHAT, headers });
      expect([method, json.result, json.error.code]).toEqual([method, undefined, -32601]);
    }
  });

  test("is not declared while skills are off", async () => {
    await using gateway = await start({ skills: false });
    expect(new SkillsClient(await openClient(gateway.url)).supported).toBe(false);
  });

  test.each([
    "skill://quote/../translate/SKILL.md",
    "skill://quote/%2e%2e/%2e%2e/translate/SKILL.md",
    "skill://quote/..%2ftranslate%2fSKILL.md",
    "skill://quote/..%5ctranslate%5cSKILL.md",
    "skill://quote/link.txt",
    "skill://quote/.env",
    "skill://quote/%2eenv",
    "skill://quote/./.env",
    "skill://quote/%zz",
    "skill://quote/%00",
    "skill://quote//etc/hosts",
    "skill://quote/%2fetc%2fhosts",
    "skill://quote/references",
    "skill://quote/",
    "skill://quote",
    "skill://nobody/SKILL.md",
    "file:///etc/hosts",
  ])("has no resource %s", async (uri) => {
    await using gateway = await start();
    const { json } = await call(gateway.url, "resources/read", { uri }, { headers: { "mcp-name": uri } });
    expect(json.error).toMatchObject({ code: -32602 });
    expect(json.error.message).toContain("not found");
  });

  test("sends digests and sizes that match the files", async () => {
    await using gateway = await start();
    const { json } = await call(gateway.url, "skills/list");
    const [quote] = json.result.skills as { resources: { uri: string; digest: string; size: number }[] }[];
    const terms = quote?.resources.find(({ uri }) => uri.endsWith("terms%20of%20sale.md"));
    const digest = createHash("sha256").update(MARKDOWN).digest("hex");
    expect(terms).toMatchObject({ digest: `sha256:${digest}`, size: Buffer.byteLength(MARKDOWN) });
  });
});

/** Skills of one file, whose reading a test controls. */
function fakeSkills(ids: readonly string[], read: (id: string) => Promise<Uint8Array | undefined>) {
  const skillOf = (id: string): McpSkill => ({
    id,
    files: async () => [{ path: "SKILL.md", size: 1, modified: 1, read: () => read(id) }],
  });
  const find = (id: string) => (ids.includes(id) ? skillOf(id) : undefined);
  return startGateway({
    config: { gateway: OPEN },
    mcpTools: fakeTools({ skills: { list: () => ids.map(skillOf), find } }),
  });
}

function bytesOf(id: string): Buffer {
  return Buffer.from(skillText(id, `Does ${id}.`));
}

describe("the files of skills", () => {
  test("are read once for callers at the same time, one after the other", async () => {
    const read: string[] = [];
    let open = 0;
    await using gateway = await fakeSkills(["a", "b", "c"], async (id) => {
      read.push(id);
      expect(++open).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      open--;
      return bytesOf(id);
    });
    const answers = await Promise.all([1, 2, 3].map(() => call(gateway.url, "skills/list")));
    for (const { json } of answers) expect(json.result.skills).toHaveLength(3);
    expect(read).toEqual(["a", "b", "c"]);
  });

  test.each([
    ["could not be read", () => Promise.resolve(undefined)],
    ["failed to be read", () => Promise.reject(new Error("EIO"))],
  ])("are read again if one %s", async (_, fail) => {
    let failures = 1;
    await using gateway = await fakeSkills(["a", "b"], async (id) =>
      id === "a" && failures-- > 0 ? await fail() : bytesOf(id),
    );
    await call(gateway.url, "skills/list");
    const { json } = await call(gateway.url, "skills/list");
    expect(json.result.skills).toHaveLength(2);
  });
});
