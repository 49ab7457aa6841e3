import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { startAnthropic } from "#test/backends/stand-ins/anthropic.ts";
import { startChatCompletions, startResponses } from "#test/backends/stand-ins/openai.ts";
import { startProcess } from "#test/harness/process.ts";
import { blocksOf } from "./blocks.ts";

const recipes = blocksOf("docs/agents.md").filter(({ language }) => language === "json5");
function recipe(wanted: string) {
  return recipes.find(({ name }) => name === `gateway.json5 ${wanted}`)?.text ?? "";
}
const key = "a-key-of-the-page-of-agents";
const env = {
  REST_API_KEY: key,
  RPC_TOKEN: "a-token-of-the-page-of-agents",
  OPENAI_API_KEY: "sk-of-the-page",
  ANTHROPIC_API_KEY: "sk-ant-of-the-page",
  GEMINI_API_KEY: "gemini-of-the-page",
  MISTRAL_API_KEY: "mistral-of-the-page",
  AGENT_SECRET: "a-secret-of-the-agent",
  MCP_TOKEN: "a-token-of-the-server",
};
const folder = mkdtempSync(join(tmpdir(), "gateway-agents-"));
writeFileSync(join(folder, "support.md"), "You answer for the support.");
afterAll(() => rmSync(folder, { recursive: true }));

it("the page has a recipe for each kind of agent", () => {
  expect(recipes.map(({ name }) => name.replace("gateway.json5 ", ""))).toEqual([
    "ollama",
    "openai",
    "anthropic",
    "mistral",
    "http",
    "command",
    "prices",
    "tools",
  ]);
});

it.each(recipes.map(({ name, text }) => [name, text]))("%s is an accepted configuration", async (_, text) => {
  const file = join(folder, "gateway.json5");
  writeFileSync(file, text);
  const { config, warnings } = await loadConfig({ file, env, built: BUILT });
  expect(config.agents.main?.backend).not.toBe("echo");
  expect(warnings).toEqual([]);
});

/** Runs a recipe's agent against a stand-in for its provider or service. */
async function ask(text: string): Promise<{ reply: string; usage: object }> {
  await using gateway = await startProcess({ config: text, env, cwd: folder });
  const answer = await fetch(`${gateway.url}/api/v1/chat/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ message: "Good morning!" }),
  });
  const reply = await answer.text();
  if (answer.status !== 200) throw new Error([answer.status, reply, ...gateway.out, ...gateway.err].join("\n"));
  return JSON.parse(reply) as { reply: string; usage: object };
}
function at(text: string, begin: string, more: string) {
  expect(text).toContain(begin);
  return text.replace(begin, more);
}

describe("the recipe runs against a stand-in of its service:", () => {
  it("Ollama", async () => {
    await using server = await startChatCompletions();
    const { reply } = await ask(at(recipe("ollama"), "http://127.0.0.1:11434/v1", `${server.url}/v1`));
    expect(reply).not.toBe("");
    expect(server.seen[0]?.json).toMatchObject({ model: "llama3.2", stream: true });
  });

  it("OpenAI", async () => {
    await using server = await startResponses();
    const text = at(recipe("openai"), 'type: "openai",', `type: "openai", baseUrl: "${server.url}/v1",`);
    expect((await ask(text)).reply).not.toBe("");
    expect(server.seen[0]?.json).toMatchObject({ model: "gpt-5-mini" });
    expect(JSON.stringify(server.seen[0]?.json)).toContain("You answer for the support.");
  });

  it("prices, and its usage is what the page shows", async () => {
    await using server = await startResponses({
      text: ["Good morning!"],
      usage: { input: 1200, output: 80, cached: 1024, reasoning: 0 },
    });
    const text = at(recipe("prices"), 'type: "openai",', `type: "openai", baseUrl: "${server.url}/v1",`);
    const shown = blocksOf("docs/agents.md").find(({ language }) => language === "json")?.text ?? "";
    expect((await ask(text)).usage).toEqual(JSON.parse(shown));
  });

  it("Anthropic", async () => {
    await using server = await startAnthropic();
    const text = at(recipe("anthropic"), 'type: "anthropic",', `type: "anthropic", baseUrl: "${server.url}/v1",`);
    expect((await ask(text)).reply).not.toBe("");
    expect(server.seen[0]?.json).toMatchObject({ model: "claude-sonnet-4-5", max_tokens: 8000 });
  });

  it("the agent in Python", async () => {
    const script = join(import.meta.dirname, "../../docs/examples/python-http-agent/agent.py");
    const agent = spawn("python3", [script, "0"], { stdio: ["ignore", "pipe", "ignore"] });
    try {
      const [line] = (await once(agent.stdout, "data")) as [Buffer];
      const { reply } = await ask(at(recipe("http"), "http://127.0.0.1:8000/", line.toString().trim()));
      expect(reply).toBe("That was message 1 of ours. It has 2 words.");
    } finally {
      agent.kill("SIGKILL");
    }
  });

  it("the program", async () => {
    expect((await ask(recipe("command"))).reply).toBe("GOOD MORNING!");
  });
});
