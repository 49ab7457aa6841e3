import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SECRETS = ["REST_API_KEY", "CONSOLE_TOKEN", "WEBHOOK_TOKEN", "GITHUB_SECRET", "OPS_SECRET"] as const;

export type WorkflowGateway = AsyncDisposable & {
  url: string;
  folder: string;
  secrets: Record<(typeof SECRETS)[number], string>;
};

/**
 * The built gateway with an echo agent, new secrets and the given parts of its configuration, in a temporary folder and on a free port. Disposing ends it,
 * and so does the end of this process.
 */
export async function startWorkflowGateway(parts: string): Promise<WorkflowGateway> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-workflows-"));
  const receiver = await startReceiver();
  const secrets = Object.fromEntries(SECRETS.map((name) => [name, randomBytes(16).toString("hex")]));
  writeFileSync(join(folder, "gateway.json5"), configurationWith(parts));
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, ...secrets, OPS_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` };
  const main = join(import.meta.dirname, "../../dist/main.js");
  const child = spawn(process.execPath, [main, "--port", "0"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const clean = () => {
    child.kill("SIGKILL");
    receiver.closeAllConnections();
    receiver.close();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", clean);
  const end = async () => {
    process.off("exit", clean);
    const ended = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await ended;
    clean();
  };
  try {
    const url = await urlOf(child);
    return { url, folder, secrets: secrets as WorkflowGateway["secrets"], [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

function configurationWith(parts: string): string {
  return `{
    gateway: {
      rest: { auth: { keys: [{ name: "workflows", key: "\${REST_API_KEY}", scopes: ["admin"] }] } },
      console: { token: "\${CONSOLE_TOKEN}" },
    },
    agents: { main: { backend: "echo" } },
    ${parts}
  }`;
}

/** The channel that receives announcements. */
async function startReceiver(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().once("end", () => response.writeHead(204).end());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

/** The address in the log of a gateway. Throws with its log if it ends before it listens. */
async function urlOf(child: ChildProcess): Promise<string> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    lines.push(line);
    const [url] = /\blistening\b/.test(line) ? (/https?:\/\/[^\s"]+/.exec(line) ?? []) : [];
    if (url !== undefined) {
      child.stdout?.resume();
      return url;
    }
  }
  throw new Error(`The gateway ended before it listened:\n${lines.join("\n")}`);
}
