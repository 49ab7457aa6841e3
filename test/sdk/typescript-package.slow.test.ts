import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayProcess, root, startProcess } from "#test/harness/process.ts";
import { typescriptProgram } from "./readme-program.ts";

const folder = mkdtempSync(join(tmpdir(), "client-"));
const installed = join(folder, "node_modules/@agent-gateway/client");
let gateway: GatewayProcess;

beforeAll(async () => {
  gateway = await startProcess({ onFinished: () => {} });
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build-clients.ts"], { cwd: root });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", type: "module" }));
  const packed = execFileSync("npm", ["pack", "--silent", join(root, "dist/clients/typescript")], { cwd: folder });
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${String(packed).trim()}`], {
    cwd: folder,
  });
  // The packages of a consumer: the types of Node, and a WebSocket if Node has none.
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  for (const name of ["ws", "@types/node", "@types/ws", "undici-types"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  // A hook cannot call `afterAll`. The function that it returns runs after the tests.
  return () => gateway[Symbol.asyncDispose]();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function environment() {
  return {
    PATH: process.env.PATH ?? "",
    GATEWAY_URL: gateway.url,
    REST_API_KEY: gateway.secrets.CONSOLE_TOKEN,
    RPC_TOKEN: gateway.secrets.RPC_TOKEN,
    WEBHOOK_TOKEN: gateway.secrets.WEBHOOK_TOKEN,
  };
}
function run(file: string, code: string) {
  writeFileSync(join(folder, file), code);
  return spawnSync(process.execPath, ["--import", join(root, "node_modules/tsx/dist/esm/index.mjs"), file], {
    cwd: folder,
    env: environment(),
    encoding: "utf8",
  });
}
function check(file: string, code: string): string {
  writeFileSync(join(folder, file), code);
  const options = [
    "--noEmit",
    "--strict",
    "--target",
    "es2023",
    "--lib",
    "es2023,esnext.disposable",
    "--module",
    "nodenext",
  ];
  const { stdout } = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...options, file], {
    cwd: folder,
    encoding: "utf8",
  });
  return stdout;
}

describe("the package @agent-gateway/client", () => {
  test("has no dependencies, and its clients are at most 12 kB", async () => {
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    expect(manifest).not.toHaveProperty("dependencies");
    const { outputFiles } = await build({
      stdin: { contents: `export * from "@agent-gateway/client"`, resolveDir: folder },
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
    });
    expect(gzipSync(outputFiles[0]?.contents ?? "").length).toBeLessThanOrEqual(12_288);
  });

  test("runs the code of its README", () => {
    const readme = readFileSync(join(installed, "README.md"), "utf8");
    const given = `
import { WebSocket } from "ws";
const body = JSON.stringify({ type: "turn.completed", timestamp: new Date().toISOString(), data: { reply: "announced" } });
const secret = "whsec_" + btoa("a secret that is long enough");
const headers = await webhooks.sign(body, secret);
`;
    // Node 20 has no WebSocket, and the test's gateway has its own port.
    const program = typescriptProgram(readme, given).replace(
      `url: "http://127.0.0.1:18789", `,
      "WebSocket: WebSocket as never, ",
    );
    expect(check("readme.ts", program)).toBe("");
    const { stdout, stderr, status } = run("readme.ts", program);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([
        "What changed since yesterday?",
        "turn.completed",
        "announced",
        expect.stringContaining("The turn was not found. req_"),
      ]),
    );
  });

  test("has types for every entry, and rejects what the contract does not have", () => {
    const program = (wrong: string) => `
import { Gateway } from "@agent-gateway/client";
import { RestClient, type Turn } from "@agent-gateway/client/rest";
import { RpcClient, type types } from "@agent-gateway/client/rpc";
import { sign, unwrap } from "@agent-gateway/client/webhooks";
const gateway = new Gateway();
export const turn: Promise<Turn> = new RestClient().turns.get("turn_1");
export const agents: Promise<types.AgentList> = new RpcClient().agent.list();
export const signed = [sign("{}", "s"), unwrap("{}", {}, "s")];
${wrong}
`;
    expect(check("right.ts", program(""))).toBe("");
    const mistakes: [string, string][] = [
      [`gateway.chat.sendd({ message: "x" });`, "Did you mean 'send'?"],
      [`gateway.chat.send({ mesage: "x" });`, "'mesage' does not exist"],
      ["gateway.chat.send({});", "Property 'message' is missing"],
      [`gateway.deliveries.list({ outcome: "fialed" });`, `'"fialed"' is not assignable`],
      ["gateway.rpc.agent.status({});", "Property 'agentName' is missing"],
      [`gateway.turns.get("turn_1").then((turn) => turn.repply);`, "Did you mean 'reply'?"],
    ];
    const words = check("wrong.ts", program(mistakes.map(([code]) => code).join("\n")));
    for (const [, message] of mistakes) expect(words).toContain(message);
  });
});
