import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { migrate } from "#store/postgres/migrate.ts";
import { postgresTests, systemBins } from "#test/harness/postgres.ts";
import { type GatewayProcess, root, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { MIGRATIONS } from "../stores/upgrade/next-postgres.ts";
import { type Block, blocksOf } from "./blocks.ts";

const PAGE = "docs/operations.md";
const run = promisify(execFile);
const blocks = blocksOf(PAGE);
function textOf(name: string): string {
  return (blocks.find((block) => block.name === name) as Block).text;
}
const KEY = "rest-key-of-the-operations-page";
/** Several starts of the gateway, one after another. */
const STARTS_MS = 40_000;

/** Runs a block of the page as if it were pasted in the folder of the installation. */
async function paste(
  name: string,
  { folder, url, env = {} }: { folder: string; url?: string; env?: Record<string, string> },
) {
  const text = url === undefined ? textOf(name) : textOf(name).replaceAll("127.0.0.1:18789", new URL(url).host);
  const PATH = [systemBins()[0], process.env.PATH].join(":");
  const { stdout } = await run("bash", ["-c", `set -euo pipefail\n${text}`], {
    cwd: folder,
    env: { PATH, REST_API_KEY: KEY, ...env },
  });
  return stdout;
}

/** The folder of the gateway's installation, as far as `npm start` needs it. */
async function install(config: string, env: Record<string, string> = {}): Promise<GatewayProcess> {
  const gateway = await startProcess({ config, env: { REST_API_KEY: KEY, ...env } });
  const scripts = { start: `exec ${process.execPath} ${join(root, "dist/main.js")}` };
  writeFileSync(join(gateway.folder, "package.json"), JSON.stringify({ private: true, scripts }));
  return gateway;
}

/** The content of a folder and of its folders. */
function sourceOf(folder: string): string {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(root, folder, file), "utf8"))
    .join("");
}

async function say({ url }: GatewayProcess, message: string): Promise<string> {
  const { json } = await createRest(url, KEY).call("chat.send", { body: { message } });
  expect(json).toMatchObject({ reply: message });
  return String(json.turn_id);
}
async function statusOf({ url }: GatewayProcess, turn_id: string): Promise<number> {
  return (await createRest(url, KEY).call("turns.get", { path: { turn_id } })).status;
}
async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.kill("SIGTERM");
  expect(await gateway.exited).toMatchObject({ code: 0 });
}

describe("docs/operations.md", () => {
  it(
    "backs up a SQLite store in use, and restores it",
    async () => {
      await using gateway = await install(textOf("sqlite"));
      const { folder } = gateway;
      const before = await say(gateway, "before the backup");
      expect(await paste("backup", { folder })).toMatch(/backup\.db is a copy of the store: \d+ bytes\.\n$/);
      const after = await say(gateway, "after the backup");
      await stop(gateway);

      await using again = await startProcess({ cwd: folder, env: { REST_API_KEY: KEY } });
      expect([await statusOf(again, before), await statusOf(again, after)]).toEqual([200, 200]);
      await stop(again);

      await paste("restore", { folder });
      await using restored = await startProcess({ cwd: folder, env: { REST_API_KEY: KEY } });
      expect([await statusOf(restored, before), await statusOf(restored, after)]).toEqual([200, 404]);
      expect(JSON.parse(await paste("ready", { folder, url: restored.url }))).toMatchObject({
        parts: { store: { ok: true } },
      });
      await stop(restored);
    },
    STARTS_MS,
  );

  it("names only existing metrics, log events and parts", async () => {
    const rpc = { auth: { tokens: [{ name: "ops", token: "rpc-token-of-the-page", permissions: "*" }] } };
    const webhooks = { token: [{ value: "webhook-token-of-the-page", since: "2026-03-01" }] };
    const budgets = { daily: { per: "day", tokens: 1_000 } };
    const notify = { ops: { url: "http://127.0.0.1:1", secret: "secret-of-the-endpoint-of-the-page", events: ["*"] } };
    const config = { gateway: { rpc }, webhooks, agents: { main: { backend: "echo" } }, budgets, notify };
    await using gateway = await startProcess({ config });
    const headers = { authorization: "Bearer rpc-token-of-the-page" };
    const metrics = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
    const page = readFileSync(join(root, PAGE), "utf8");
    const named = [...page.matchAll(/`((?:gateway|nodejs|process)_[a-z_]+)[`{]/g)].map(([, name = ""]) => name);
    expect(named.length).toBeGreaterThan(10);
    // A counter has no series before its first increment.
    const observed = sourceOf("src/observe");
    for (const name of named) {
      const isNamed =
        metrics.includes(`# TYPE ${name} `) ||
        observed.includes(`"${name.replace(/^gateway_|_(total|seconds)$/g, "")}"`);
      expect([name, isNamed]).toEqual([name, true]);
    }
    const { parts } = (await (await fetch(`${gateway.url}/readyz`)).json()) as { parts: object };
    for (const part of Object.keys(parts)) expect(page).toContain(`\`${part}\``);
    const [section = ""] = /^### Log events\n[\s\S]*?\n(?=## )/m.exec(page) ?? [];
    const logged = [...section.matchAll(/`(\w+)\.([\w-]+)`/g)];
    expect(logged.length).toBeGreaterThan(5);
    // Each engine names the parts of the store that it reports.
    const engines = sourceOf("src/store");
    for (const [, subject, what] of logged) {
      const isNamed = observed.includes(`"${subject}.${what}"`) || engines.includes(`{ name: "${what}", detail`);
      expect([subject, what, isNamed]).toEqual([subject, what, true]);
    }
  });
});

await postgresTests((server) => {
  it.skipIf(systemBins().length === 0)(
    "docs/operations.md creates a database, dumps and restores it (needs pg_dump)",
    async () => {
      const administer = async (name: string) => {
        const statements = textOf(name).split(";");
        for (const statement of statements.filter((one) => one.trim() !== "")) await server.query(statement);
      };
      /** The state in which a later version finds the database. */
      const upgrade = async () => {
        const client = new pg.Client(url);
        await client.connect();
        const { steps } = await migrate(client, 1, MIGRATIONS);
        await client.end();
        return steps;
      };
      await administer("database");
      const url = server.url("gateway").replace("postgres@", "gateway:another%20one@");
      const env = { DATABASE_URL: url, REST_API_KEY: KEY };
      await using gateway = await install(textOf("postgres"), env);
      const { folder } = gateway;
      const before = await say(gateway, "before the dump");
      await paste("pg-backup", { folder, env });
      const after = await say(gateway, "after the dump");
      await stop(gateway);
      expect(gateway.output).not.toContain("another one");
      expect(await paste("pg-migrate", { folder, env })).toMatch(
        /^Nothing to do: the schema has version \d+\. Start the gateways\.$/m,
      );
      expect(await upgrade()).toBe(1);

      await administer("pg-restore-database");
      await paste("pg-restore", { folder, env });
      await using restored = await startProcess({ cwd: folder, env });
      expect([await statusOf(restored, before), await statusOf(restored, after)]).toEqual([200, 404]);
      expect(await say(restored, "and goes on")).toMatch(/^turn_/);
      await stop(restored);
      expect(await upgrade()).toBe(1);
    },
    STARTS_MS,
  );
});
