import type { ChildProcess } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "#test/harness/ports.ts";
import manifest from "../../package.json" with { type: "json" };
import { buildGateway, buildServer } from "./builds.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import { pinned, SERVER_CORE } from "./machine.ts";
import type { Loaded } from "./servers/preloaded.ts";

export const REST_KEY = "bench-rest-key-of-32-characters!";
export const RPC_TOKEN = "bench-rpc-token-of-32-characters";
export const WEBHOOK_TOKEN = "bench-webhook-token-of-32-chars!";

export type ConfigOptions = {
  agent?: object;
  gateway?: object;
  rpc?: object;
  /** In addition to the token; without it webhooks are off. */
  webhooks?: object;
  limits?: object;
  sessions?: object;
  providers?: object;
  /** The path of the store, relative to the gateway's folder. By default in memory. */
  store?: object;
};

// All features are on: the access log, the flight recorder with bodies, the metrics. Only the limit of the store is larger, for full stores.
function configOf({ agent, gateway, rpc, webhooks, limits, ...others }: ConfigOptions) {
  return {
    gateway: {
      rest: { auth: { keys: [{ name: "bench", key: REST_KEY, scopes: ["chat", "admin"] }] } },
      rpc: { auth: { tokens: [{ name: "bench", token: RPC_TOKEN, permissions: ["*"] }] }, ...rpc },
      ...gateway,
    },
    agents: { main: { backend: "echo", ...agent } },
    ...(webhooks && { webhooks: { token: WEBHOOK_TOKEN, ...webhooks } }),
    limits: { storeBytes: "16GiB", ...limits },
    ...others,
  };
}

/** A file in the gateway's own folder. */
export const SQLITE = { type: "sqlite", path: "gateway.db" };

export type Started = AsyncDisposable & {
  url: string;
  /** The TLS address, if requested. */
  tlsUrl?: string;
  pid: number;
  child: ChildProcess;
};

/** A folder for a server's configuration and log, deleted with it. */
function makeFolder(options: ConfigOptions) {
  const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
  const config = join(folder, "gateway.json");
  writeFileSync(config, JSON.stringify(configOf(options)));
  return { folder, config, log: openSync(join(folder, "log"), "w") };
}

/** The flags that `npm start` passes to Node: the gateway is measured with its usual start. */
const SHIPPED_ARGS = manifest.scripts.start.match(/--[\w-]+=\S+/g) ?? [];

function startServer(
  file: string,
  nodeArgs: readonly string[],
  args: readonly string[],
  { folder, log, channel }: { folder: string; log: number; channel: boolean },
) {
  const [command, all] = pinned(SERVER_CORE, process.execPath, [...SHIPPED_ARGS, ...nodeArgs, file, ...args]);
  const env = { ...process.env, LOG_LEVEL: "info", LOG_FORMAT: "json" };
  const child = startChild(command, all, {
    stdio: ["ignore", log, "inherit", ...(channel ? ["ipc" as const] : [])],
    env,
  });
  closeSync(log);
  const dispose = async () => {
    await stopChild(child);
    rmSync(folder, { recursive: true, force: true });
  };
  return { child, pid: child.pid as number, [Symbol.asyncDispose]: dispose };
}

export type GatewayOptions = ConfigOptions & {
  nodeArgs?: readonly string[];
  channel?: boolean;
  tls?: boolean;
};

/** The certificate of the tests, for this machine only. */
const TLS = { cert: resolve("test/config/tls/cert.pem"), key: resolve("test/config/tls/key.pem") };

/** `node dist/main.js` with an echo agent and its own port. It may not answer yet. */
export async function startGateway(options: GatewayOptions = {}): Promise<Started> {
  const { nodeArgs = [], channel = false, tls = false, gateway, ...config } = options;
  const file = await buildGateway();
  const port = await freePort();
  const tlsPort = tls ? await freePort() : undefined;
  const listeners = tls && { listeners: [{ port }, { port: tlsPort, tls: TLS }] };
  const place = { ...makeFolder({ ...config, gateway: { ...gateway, ...listeners } }), channel };
  const started = startServer(file, nodeArgs, ["--config", place.config, "--port", String(port)], place);
  const tlsUrl = tls && { tlsUrl: `https://127.0.0.1:${tlsPort}` };
  return { url: `http://127.0.0.1:${port}`, ...tlsUrl, ...started };
}

/** The gateway with a full store (servers/preloaded.ts); `ask` sends it a command and resolves with its answer. */
export async function startPreloaded(fill: { sessions: number; turns: number; events?: number; store?: object }) {
  const file = await buildServer("preloaded");
  const place = { ...makeFolder({ store: fill.store }), channel: true };
  const options = { config: place.config, events: 0, ...fill };
  const started = startServer(file, ["--max-old-space-size=8192"], [JSON.stringify(options)], place);
  const { child } = started;
  const loaded = await nextMessage<Loaded>(child);
  const ask = <T>(word: string): Promise<T> => {
    const answer = nextMessage<T>(child);
    child.send(word);
    return answer;
  };
  return { ...loaded, ...started, ask };
}

/** Waits until a path answers 200. */
export async function untilAnswers(url: string, init: RequestInit = {}, withinMs = 60_000): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    const answer = await fetch(url, init).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.status === 200) return;
    if (performance.now() > end) throw new Error(`${url} answered ${answer?.status ?? "nothing"} for ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The metrics of a gateway, summed over all labels except the given ones. */
export async function readMetrics(url: string): Promise<(start: string) => number> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${RPC_TOKEN}` } });
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}`);
  const lines = (await answer.text()).split("\n");
  return (start) =>
    lines
      .filter((line) => line.startsWith(start))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** The servers that the gateway is compared with, each a file in servers/. */
export type BareName = "bare-http" | "bare-https" | "bare-http2" | "bare-http2-any" | "bare-ws" | "bare-proxy";

export async function startBare(
  name: BareName,
  nodeArgs: readonly string[] = [],
  own: readonly string[] = [],
): Promise<Started> {
  const isTls = name === "bare-https";
  const files = isTls ? [TLS.cert, TLS.key] : own;
  const [command, args] = pinned(SERVER_CORE, process.execPath, [...nodeArgs, await buildServer(name), ...files]);
  const child = startChild(command, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const { port } = await nextMessage<{ port: number }>(child);
  const dispose = () => stopChild(child);
  const url = `${isTls ? "https" : "http"}://127.0.0.1:${port}`;
  return { url, pid: child.pid as number, child, [Symbol.asyncDispose]: dispose };
}
