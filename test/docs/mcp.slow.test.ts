// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, it, onTestFinished } from "vitest";
import { main, root, startProcess } from "#test/harness/process.ts";
import { at, blocksOf, paste } from "./blocks.ts";
import { configOfPage } from "./recipes.ts";

const PAGE = "docs/mcp.md";
const run = promisify(execFile);
const env = { REST_API_KEY: "a-key-of-the-page-of-mcp" };
function block(name: string): string {
  const found = blocksOf(PAGE).find((one) => one.name === name);
  if (!found) throw new Error(`${PAGE} has no block ${name}`);
  return found.text;
}
async function startPage(...names: string[]) {
  return startProcess({ config: await configOfPage(PAGE, ["gateway.json5", ...names]), env });
}
async function toolsOf(transport: StreamableHTTPClientTransport | StdioClientTransport): Promise<string[]> {
  const client = new Client({ name: "page", version: "1.0.0" });
  await client.connect(transport);
  try {
    const { content } = await client.callTool({ name: "ask_main", arguments: { message: "Hello" } });
    expect(content).toMatchObject([{ text: "Hello" }, {}]);
    return (await client.listTools()).tools.map(({ name }) => name);
  } finally {
    await client.close();
  }
}
function overHttp(url: string, headers: Record<string, string>) {
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}
/** A folder with a program of this name, in front of the PATH. */
function withProgram(create: (folder: string) => void): string {
  const folder = mkdtempSync(join(tmpdir(), "mcp-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  create(folder);
  return `${folder}:${process.env.PATH}`;
}

const TOOLS = ["ask_main", "turn_get"];

it.each([
  [".mcp.json", "${REST_API_KEY}"],
  [".cursor/mcp.json", "${env:REST_API_KEY}"],
])("%s connects a client", async (name, variable) => {
  await using gateway = await startPage();
  const { mcpServers } = JSON.parse(at(gateway.url, block(name)).replace(variable, env.REST_API_KEY));
  expect(await toolsOf(overHttp(mcpServers.gateway.url, mcpServers.gateway.headers))).toEqual(TOOLS);
});

it("the command for Claude Code has the arguments that connect a client", async () => {
  await using gateway = await startPage();
  // Stands in for Claude Code: prints its arguments.
  const PATH = withProgram((folder) => {
    writeFileSync(join(folder, "claude"), '#!/bin/sh\nprintf "%s\\n" "$@"\n');
    chmodSync(join(folder, "claude"), 0o755);
  });
  const printed = await paste(at(gateway.url, block("claude")), { ...env, PATH });
  const [...args] = printed.trimEnd().split("\n");
  expect(args.slice(0, 5)).toEqual(["mcp", "add", "--transport", "http", "gateway"]);
  const [url = "", option, header = ""] = args.slice(5);
  expect(option).toBe("--header");
  const [field = "", value = ""] = header.split(": ");
  expect(await toolsOf(overHttp(url, { [field]: value }))).toEqual(TOOLS);
});

it("the configuration of a client that starts programs connects it", async () => {
  await using gateway = await startPage();
  const { command, args, env: own } = JSON.parse(at(gateway.url, block("stdio"))).mcpServers.gateway;
  const PATH = withProgram((folder) => symlinkSync(main, join(folder, "agent-gateway")));
  const transport = new StdioClientTransport({ command, args, env: { ...own, ...env, PATH } });
  expect(await toolsOf(transport)).toEqual(TOOLS);
});

it("the program with the AI SDK prints the reply", async () => {
  await using gateway = await startPage();
  // The folder of the package.
  const file = join(root, "dist", `mcp-page-${process.pid}.mjs`);
  writeFileSync(file, at(gateway.url, block("ai-sdk")));
  onTestFinished(() => rmSync(file));
  const { stdout } = await run(process.execPath, [file], { env: { ...process.env, ...env } });
  expect(stdout).toBe("What changed since yesterday?\n");
});

it("the settings of the tools are valid, and the list of operator tools is complete", async () => {
  const config = (await configOfPage(PAGE, ["gateway.json5", "tools"])) as { gateway: Record<string, unknown> };
  const keys = [{ name: "ops", key: env.REST_API_KEY, scopes: ["chat", "admin"] }];
  await using gateway = await startProcess({
    config: { ...config, gateway: { ...config.gateway, rest: { auth: { keys } } } },
    env,
  });
  const names = await toolsOf(overHttp(`${gateway.url}/mcp`, { authorization: `Bearer ${env.REST_API_KEY}` }));
  const rows = readFileSync(join(root, PAGE), "utf8").matchAll(/^\| `(\w+)` \| `read` \|/gm);
  const listed = [...rows].map(([, name]) => name);
  expect(names.toSorted()).toEqual([...TOOLS, ...listed].toSorted());
});
