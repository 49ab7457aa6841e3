import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "./imports.ts";
import { noteChecked } from "./ledger.ts";

const PACKAGE = join(root, "node_modules/@modelcontextprotocol/conformance");

type Requirements = { server: string[]; not_scored?: { scenario: string; leg: string }[] };

/** The scenarios for servers at a revision of the protocol: the required ones, and those that are only reported. */
export function scenariosOf(revision: string): string[] {
  const { server, not_scored: others = [] } = parse(
    readFileSync(join(PACKAGE, `requirements/${revision}.yaml`), "utf8"),
  ) as Requirements;
  return [...server, ...others.filter(({ leg }) => leg === "server").map(({ scenario }) => scenario)];
}

type Check = { id: string; status: string; errorMessage?: string };

/** Runs a scenario of the official suite against a server. Returns its checks. */
export async function runScenario(url: string, scenario: string, revision?: string): Promise<Check[]> {
  const out = mkdtempSync(join(tmpdir(), "conformance-"));
  const hook = join(root, "test/harness/fs-with-glob.mjs");
  const version = revision === undefined ? [] : ["--spec-version", revision];
  const args = ["--import", hook, join(PACKAGE, "dist/index.js"), "server", "--url", url, "--scenario", scenario];
  try {
    const child = spawn(process.execPath, [...args, ...version, "-o", out], { cwd: out, stdio: "ignore" });
    await new Promise((resolve) => child.on("close", resolve));
    const names = await readdir(out, { recursive: true });
    const files = names.filter((name) => name.endsWith("checks.json"));
    return files.flatMap((file) => JSON.parse(readFileSync(join(out, file), "utf8")) as Check[]);
  } finally {
    rmSync(out, { recursive: true });
  }
}

/** A proxy that adds a key to each request: the suite has no option for one. It forwards the Host as it was sent. */
export async function startKeyProxy(to: string, key: string) {
  const { hostname, port } = new URL(to);
  const proxy = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${key}` };
    const upstream = request({ hostname, port, method: req.method, path: req.url, headers }, (answer) => {
      // The suite checks the answers itself.
      noteChecked(String(answer.headers["x-request-id"]));
      res.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(res);
    });
    upstream.on("error", () => res.destroy());
    res.on("close", () => upstream.destroy());
    req.pipe(upstream);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
