import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { installOf, missingPackages } from "#gateway/packages.ts";
import { load, refused, withSections } from "./configs.ts";

const built = { stores: ["memory"], backends: ["echo", "model", "http", "a2a", "command", "acp"] };
const local = { type: "openai-compatible", baseUrl: "http://127.0.0.1:11434/v1" };
const models = { fast: { provider: "local", model: "llama3.2" }, deep: { provider: "local", model: "qwen3" } };
function withModels(more: object = {}, sections: object = {}) {
  return {
    providers: { local },
    agents: { main: { backend: "model", models, ...more } },
    ...sections,
  };
}

describe("an agent with a model", () => {
  test("has the values of its names", async () => {
    const files = { type: "stdio", run: ["mcp-files"], callTimeout: "5s", maxOutput: "4KiB" };
    const text = withSections(
      withModels(
        { model: "fast", fallbacks: ["deep"], summaryModel: "deep", tools: ["files/*"], timeouts: { silence: "5s" } },
        { tools: { files } },
      ),
    );
    const { config } = await load(text, { built });
    const { main } = config.agents;
    expect(main).toMatchObject({
      models: ["fast", "deep"],
      modelTable: { fast: { provider: "local", model: "llama3.2" } },
      timeouts: { connect: 10_000, firstByte: 120_000, silence: 5_000 },
      tools: ["files/*"],
      steps: 20,
    });
    expect(config.providers.local).toEqual({ ...local, apiKey: undefined, headers: {} });
    expect(config.tools.files).toMatchObject({ run: ["mcp-files"], callTimeout: 5_000, maxOutput: 4096 });
  });

  test("is refused, with the command that installs its packages, if they are missing", async () => {
    const asked: string[] = [];
    const missing = (kinds: readonly string[]) => {
      asked.push(...kinds);
      return kinds.includes("model") ? "npm install ai@6" : undefined;
    };
    expect(await refused(withModels(), { built: { ...built, missingPackages: missing } })).toEqual([
      "agents.main.backend is `model`, which needs packages that are not installed. Run: npm install ai@6",
    ]);
    expect(asked).toContain("openai-compatible");
  });
});

test("has the configured price of the model for input and output", async () => {
  const priced = (price: object) => withModels({ models: { ...models, fast: { ...models.fast, price } } });
  const { config } = await load(withSections(priced({ input: 0.25, output: 2 })), { built });
  expect(config.agents.main?.modelTable.fast?.price).toEqual({ input: 0.25, cachedInput: undefined, output: 2 });
  expect(config.agents.main?.modelTable.deep?.price).toBeUndefined();
  const at = "agents.main.models.fast.price";
  expect((await refused(priced({ input: -1, output: 2 }), { built })).join()).toContain(`${at}.input`);
  expect((await refused(priced({ input: 1 }), { built })).join()).toContain(`${at}.output`);
  expect((await refused(priced({ input: 1, output: 2, currency: "EUR" }), { built })).join()).toContain("currency");
});

describe("an agent of another backend", () => {
  test("runs in the configuration's folder unless it names another", async () => {
    const command = { run: ["python3", "agent.py"] };
    const { config, file } = await load(withSections({ agents: { main: { backend: "command", command } } }), { built });
    expect(config.agents.main?.command).toEqual({ ...command, cwd: join(file ?? "", ".."), env: {}, output: "text" });
  });
});

describe("instructions", () => {
  const written = (text: string | undefined, more: object = {}) => {
    const dir = mkdtempSync(join(tmpdir(), "gateway-config-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    if (text !== undefined) writeFileSync(join(dir, "main.md"), text);
    const file = join(dir, "gateway.json5");
    const main = { backend: "echo", instructionsFile: "./main.md", ...more };
    writeFileSync(file, JSON.stringify({ agents: { main } }));
    return { dir, load: () => loadConfig({ file, env: {}, built }) };
  };

  test("are read from their file, which is watched", async () => {
    const { dir, load } = written("Be brief.\n");
    const loaded = await load();
    expect(loaded.config.agents.main?.instructions).toBe("Be brief.");
    expect(Object.keys(loaded.files)).toContain(join(dir, "main.md"));
  });

  test.each([
    [undefined, {}, "which cannot be read: it does not exist."],
    [" \n", {}, "which is empty: write the instructions in it."],
    ["a".repeat(1024 ** 2 + 1), {}, "which is larger than 1 MiB"],
    ["a", { instructions: "b" }, "is given together with `instructions`: keep one of them."],
  ])("are refused if the file is not valid", async (text, more, message) => {
    await expect(written(text, more).load()).rejects.toThrow(message);
  });
});

test("the packages of a kind of backend are named with their versions", () => {
  expect(missingPackages(["memory", "echo", "model", "openai", "http", "a2a", "acp", "tools", "mcp"])).toBeUndefined();
  expect(missingPackages(["model", "@ai-sdk/mistral"])).toBeUndefined();
  expect(missingPackages(["model", "@ai-sdk/nobody"])).toBe("npm install @ai-sdk/nobody");
});

test("the command that installs a package installs it where this program finds it", () => {
  const folder = mkdtempSync(join(tmpdir(), "install-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "node_modules/agent-gateway/dist/main.js");
  expect(installOf("/src/agent-gateway/dist/main.js", "/anywhere")).toBe("npm install");
  expect(installOf(file, folder)).toBe("npm install --global");
  writeFileSync(join(folder, "package.json"), "{}");
  expect(installOf(file, join(folder, "below"))).toBe("npm install");
  expect(installOf(file, "/")).toBe(`npm install --prefix ${folder}`);
});
