import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { runCli } from "#test/cli/cli.ts";
import { root, startProcess } from "#test/harness/process.ts";
import { at, blocksOf, paste } from "./blocks.ts";
import { configOfPage } from "./recipes.ts";

const run = promisify(execFile);
const secrets = {
  REST_API_KEY: "rest-key-of-the-guides",
  RPC_TOKEN: "rpc-token-of-the-guides",
  WEBHOOK_TOKEN: "webhook-token-of-the-guides",
  WEBHOOK_TOKEN_NEW: "newer-webhook-token-of-the-guides",
  RPC_READ_TOKEN: "read-token-of-the-guides",
};
// biome-ignore lint/suspicious/noTemplateCurlyInString: the gateway fills it in.
const admin = { gateway: { rest: { auth: { keys: [{ name: "ops", key: "${REST_API_KEY}", scopes: ["admin"] }] } } } };
const agents = { main: { backend: "echo" } };
function block(page: string, name: string): string {
  const found = blocksOf(page).find((each) => each.name === name && each.language !== "json5");
  if (!found) throw new Error(`${page} has no block ${name}`);
  return found.text;
}

describe("docs/concepts.md", () => {
  it("reads the turn of a message, and its delivery", async () => {
    await using gateway = await startProcess({ env: secrets, config: { ...admin, agents } });
    const pasted = (name: string) => paste(at(gateway.url, block("docs/concepts.md", name)), secrets);
    const turn = JSON.parse(await pasted("turn"));
    expect(turn).toMatchObject({ status: "completed", reply: "Hello", attempt: 1 });
    const { deliveries } = JSON.parse(await pasted("delivery"));
    expect(deliveries[0]).toMatchObject({ delivery_id: turn.delivery_id, turn_id: turn.turn_id });
  });
});

describe("docs/security.md", () => {
  it("makes two webhook tokens work in parallel", async () => {
    const config = { ...(await configOfPage("docs/security.md", ["two-tokens"])), agents };
    await using gateway = await startProcess({ env: secrets, config });
    for (const token of [secrets.WEBHOOK_TOKEN, secrets.WEBHOOK_TOKEN_NEW]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const body = JSON.stringify({ message: "Hello" });
      expect((await fetch(`${gateway.url}/hooks/agent`, { method: "POST", headers, body })).status).toBe(200);
    }
  });

  it("gives a read-only token -32001 for anything else", async () => {
    const config = { ...(await configOfPage("docs/security.md", ["read-only"])), agents };
    await using gateway = await startProcess({ env: secrets, config });
    const { error } = JSON.parse(await paste(at(gateway.url, block("docs/security.md", "read-only")), secrets));
    expect(error.code).toBe(-32001);
    expect(JSON.stringify(error)).toContain("agent.reload");
  });
});

describe("docs/schedules.md", () => {
  it("lists, runs and pauses the schedules of the page", async () => {
    const page = "docs/schedules.md";
    await using gateway = await startProcess({
      env: secrets,
      config: await configOfPage(page, ["gateway.json5 schedules"]),
    });
    const env = { GATEWAY_URL: gateway.url, REST_API_KEY: secrets.REST_API_KEY };
    /** The output of the commands of a block. */
    const printed = async (name: string) => {
      const outputs = [];
      for (const line of block(page, name).trim().split("\n")) {
        const { code, out, err } = await runCli(line.split(" ").slice(1), { env });
        expect([code, line, err]).toEqual([0, line, err]);
        outputs.push(out);
      }
      return outputs;
    };
    /** Rows without times and the spaces between columns. */
    const rowsOf = (text: string) =>
      text
        .trim()
        .split("\n")
        .map((row) => row.replace(/(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?/, "time").split(/ {2,}/));
    const shown = blocksOf(page).find(({ language, name }) => language === "text" && name === "list")?.text ?? "";
    expect(rowsOf((await printed("list")).join(""))).toEqual(rowsOf(shown));
    const [ran, paused, resumed] = await printed("run");
    expect([ran, paused, resumed]).toEqual([
      expect.stringContaining("completed"),
      expect.stringContaining("brief has been paused"),
      expect.stringContaining("brief is active"),
    ]);
    const first = JSON.parse(await paste(at(gateway.url, block(page, "rest")), secrets));
    expect(first).toMatchObject({ schedule: "brief", agent: "main" });
    expect(JSON.parse(await paste(at(gateway.url, block(page, "rest")), secrets))).toEqual(first);
    expect(await printed("skipped")).toEqual([""]);
  });
});

describe("docs/migrating-from-openclaw.md", () => {
  const page = "docs/migrating-from-openclaw.md";

  it("accepts the calls of the page with its configuration", async () => {
    await using gateway = await startProcess({ env: secrets, config: await configOfPage(page, ["gateway.json5"]) });
    const pasted = async (name: string) => JSON.parse(await paste(at(gateway.url, block(page, name)), secrets));
    expect(await pasted("wake")).toMatchObject({ status: 200, eventId: expect.stringMatching(/^evt_/) });
    expect(await pasted("agent")).toMatchObject({ status: 200, sessionId: "webhook:mail:1", agent: "main" });
    expect(await pasted("mapped")).toMatchObject({ status: 200, sessionId: "webhook:mail", mapping: "mail" });
    const { mappings } = await pasted("dry-run");
    expect(mappings).toMatchObject([
      { mapping: "mail", matched: true, message: "New mail from ada@example.com: Lunch" },
    ]);
  });

  it.each([
    ["agentId", "main"],
    ["sessionKey", "hook:mail:1"],
    ["deliver", true],
    ["to", "+15551234567"],
    ["thinking", "low"],
    ["timeoutSeconds", 120],
  ])("is right that the field %s is refused by its name", async (field, value) => {
    await using gateway = await startProcess({ env: secrets, config: await configOfPage(page, ["gateway.json5"]) });
    const answer = await fetch(`${gateway.url}/hooks/agent`, {
      method: "POST",
      headers: { authorization: `Bearer ${secrets.WEBHOOK_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ message: "Hello", [field]: value }),
    });
    expect(answer.status).toBe(400);
    expect((await answer.json()) as object).toMatchObject({ errors: [{ pointer: `/${field}` }] });
  });
});

describe("docs/sdks.md", () => {
  const printed = "Hello\nHello again\nagent-not-found 404\n";

  it("prints the expected output with the TypeScript client", async () => {
    await using gateway = await startProcess({ env: secrets, config: { ...admin, agents } });
    const file = join(root, "dist", `sdks-${process.pid}.mts`);
    const client = join(root, "generated/clients/typescript/src/index.ts");
    writeFileSync(file, at(gateway.url, block("docs/sdks.md", "typescript")).replace("@agent-gateway/client", client));
    try {
      const { stdout } = await run(process.execPath, ["--import", "tsx", file], {
        env: { ...process.env, ...secrets },
      });
      expect(stdout).toBe(printed);
    } finally {
      rmSync(file);
    }
  });

  it.each(["python", "asyncio"])("prints the same with the Python client: %s", async (name) => {
    await using gateway = await startProcess({ env: secrets, config: { ...admin, agents } });
    const env = { ...process.env, ...secrets, PYTHONPATH: join(root, "generated/clients/python/src") };
    const { stdout } = await run("python3", ["-c", at(gateway.url, block("docs/sdks.md", name))], { env });
    expect(stdout).toBe(printed);
  });
});

/** A package instead of FastAPI, which would need a registry: an application with routes and a lifespan, and a response with an iterator. */
const FASTAPI = {
  "__init__.py": `
class FastAPI:
    def __init__(self, lifespan):
        self.lifespan, self.routes = lifespan, {}
    def get(self, path):
        return lambda handler: self.routes.setdefault(path, handler)
`,
  "responses.py": `
class StreamingResponse:
    def __init__(self, content, media_type):
        self.content, self.media_type = content, media_type
`,
};
/** Calls a route as FastAPI does: inside the lifespan, with the query as arguments, and sends each piece of the content. */
const SERVE = `
import asyncio
async def serve():
    async with app.lifespan(app):
        for query in ({"message": "Hello"}, {"message": "Hello", "agent": "nobody"}):
            response = await app.routes["/answer"](**query)
            print(response.media_type, "".join([piece async for piece in response.content]))
asyncio.run(serve())
`;

it("the FastAPI application of docs/sdks.md streams a reply (with a stand-in for the package)", async () => {
  await using gateway = await startProcess({ env: secrets, config: { ...admin, agents } });
  const folder = mkdtempSync(join(tmpdir(), "fastapi-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "fastapi"));
  for (const [file, text] of Object.entries(FASTAPI)) writeFileSync(join(folder, "fastapi", file), text);
  const paths = [folder, join(root, "generated/clients/python/src")].join(delimiter);
  const env = { ...process.env, ...secrets, GATEWAY_URL: gateway.url, PYTHONPATH: paths };
  const { stdout } = await run("python3", ["-c", block("docs/sdks.md", "fastapi") + SERVE], { env });
  expect(stdout).toMatch(/^text\/plain Hello\ntext\/plain The agent does not exist \(req_\w+\)\.\n$/);
});

describe("docs/deploying.md", () => {
  it("creates a different secret of 32 digits for each name", async () => {
    const folder = await paste("mktemp -d", {});
    await paste(block("docs/deploying.md", "secrets"), {}, folder.trim());
    const made = (await paste("cat .env; rm .env; rmdir $PWD", {}, folder.trim())).trim().split("\n");
    const values = made.map((line) => line.split("=")[1]);
    expect(values.filter((value) => /^[0-9a-f]{32}$/.test(value ?? ""))).toHaveLength(5);
    expect(new Set(values).size).toBe(values.length);
  });
});

describe("docs/troubleshooting.md", () => {
  it("names existing commands", async () => {
    const page = blocksOf("docs/troubleshooting.md").flatMap(({ text }) => text.trim().split("\n"));
    expect(page.length).toBeGreaterThan(4);
    for (const line of page) {
      const [name, ...words] = line.split(" ");
      expect(name).toBe("agent-gateway");
      const command = words.filter((word) => !word.startsWith("dlv_"));
      expect((await runCli([...command, "--help"])).code, line).toBe(0);
    }
  });
});
