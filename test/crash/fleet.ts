import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "#test/harness/ports.ts";
import { AGENTS, mappedSessionOf, renderedOf } from "./orders.ts";
import { SECRETS } from "./requests.ts";

export type FleetOptions = {
  /** The built gateway. */
  main: string;
  folder: string;
  store: object;
  count: number;
  env?: Record<string, string>;
  wrap?: (command: readonly string[]) => readonly string[];
  /** In addition to the quick and the slow agent, or instead of them. */
  agents?: object;
  /** Sections of the configuration that replace those below. */
  more?: object | undefined;
};

const HEARTBEAT = "200ms";
const MAPPING = { match: {}, message: renderedOf("{body.text}") };
/** Under a steady stream of requests `maxWait` ends each group. */
const BURST = { key: "{body.room}", window: "1s", maxWait: "2s", take: "all" };

/** All features are on, and no limit affects a client at full speed except the limit of a session's queue. */
function configOf({ store, agents, more }: Pick<FleetOptions, "store" | "agents" | "more">): object {
  return {
    gateway: {
      defaultAgent: "quick",
      rest: { auth: { keys: [{ name: "crash", key: SECRETS.key, scopes: ["chat", "admin"] }] } },
      rpc: { auth: { tokens: [{ name: "crash", token: SECRETS.rpcToken, permissions: "*" }] } },
      console: { token: SECRETS.consoleToken },
    },
    webhooks: {
      token: SECRETS.webhookToken,
      rateLimit: { maxRequests: 0 },
      mappings: Object.fromEntries(
        AGENTS.flatMap((agent) => [
          [`push-${agent}`, { ...MAPPING, agent, session: mappedSessionOf(agent) }],
          [`burst-${agent}`, { ...MAPPING, agent, session: `webhook:burst-${agent}-{body.room}`, coalesce: BURST }],
        ]),
      ),
    },
    agents: {
      quick: { backend: "echo", heartbeat: { every: HEARTBEAT } },
      slow: { backend: "echo", heartbeat: { every: HEARTBEAT }, echo: { delayMs: 8, chunks: 3 } },
      ...agents,
    },
    sessions: { compactAt: 2_000 },
    limits: { turns: 1_000_000, events: 1_000_000, messagesPerSession: 1_000_000, storeBytes: "8GiB" },
    store,
    ...more,
  };
}

const READY_MS = 60_000;
const LOOK_MS = 10;
const SERVES = "it serves";

/** One gateway as a process, with the same address after each start. */
export class GatewayNode {
  readonly port: number;
  readonly logFile: string;
  readonly #command: readonly string[];
  readonly #options: { cwd: string; env: Record<string, string> };
  #child: ChildProcess | undefined;
  #startedAt = 0;
  starts = 0;

  constructor(port: number, folder: string, options: FleetOptions) {
    const { PATH = "", HOME = "" } = process.env;
    this.port = port;
    this.logFile = join(folder, "log");
    const usual = [process.execPath, options.main, "--config", join(folder, "gateway.json"), "--port", String(port)];
    this.#command = options.wrap?.(usual) ?? usual;
    this.#options = { cwd: folder, env: { PATH, HOME, LOG_FORMAT: "json", ...options.env } };
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  start(): void {
    const log = openSync(this.logFile, "a");
    const [command = "", ...args] = this.#command;
    this.#child = spawn(command, args, { ...this.#options, stdio: ["ignore", log, log] });
    closeSync(log);
    this.starts++;
    this.#startedAt = performance.now();
  }

  /** Waits until it serves; throws with the end of its log if it ends instead. */
  ready(): Promise<void> {
    return this.#answers("/readyz");
  }

  /** Waits until its first listeners are open: REST opens later. */
  up(): Promise<void> {
    return this.#answers("/healthz");
  }

  async #answers(path: string): Promise<void> {
    const began = performance.now();
    const said: string[] = [];
    for (;;) {
      const what = await this.#ask(path);
      if (what === SERVES) return;
      const ms = Math.round(performance.now() - began);
      if (said.at(-1)?.endsWith(what) !== true) said.push(`${ms} ms: ${what}`);
      const lately = () => `${said.slice(-20).join("\n")}\n${this.log().slice(-3_000)}`;
      if (!this.isRunning) throw new Error(`a gateway ended instead of serving:\n${lately()}`);
      if (ms > READY_MS)
        throw new Error(`a gateway did not serve in time, ${this.sinceStart()} ms after its start:\n${lately()}`);
      await pause(LOOK_MS);
    }
  }

  async #ask(path: string): Promise<string> {
    try {
      const answer = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(2_000) });
      const text = await answer.text();
      return answer.status === 200 ? SERVES : `${answer.status} ${text}`;
    } catch (error) {
      const { name, cause } = error as { name: string; cause?: { code?: string } };
      return cause?.code ?? name;
    }
  }

  sinceStart(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  /** The same with restarts after its end, because its store may be unavailable. */
  async served(): Promise<void> {
    const end = performance.now() + READY_MS;
    for (;;) {
      try {
        return await this.ready();
      } catch (error) {
        if (this.isRunning || performance.now() > end) throw error;
        await pause(100);
        this.start();
      }
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.#child || !this.isRunning) return;
    const gone = once(this.#child, "exit");
    this.#child.kill(signal);
    await gone;
  }

  log(): string {
    return readFileSync(this.logFile, "utf8");
  }
}

export type Fleet = AsyncDisposable & { nodes: readonly GatewayNode[]; urls: readonly string[] };

/** Starts gateways on one store, and waits for their listeners. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const nodes: GatewayNode[] = [];
  // A cancelled run does not dispose of them.
  const end = () => {
    for (const node of nodes) node.signal("SIGKILL");
  };
  process.on("exit", end);
  const stop = async () => {
    process.off("exit", end);
    await Promise.all(
      nodes.map(async (node) => {
        node.signal("SIGCONT");
        await node.kill();
      }),
    );
  };
  try {
    for (let n = 0; n < options.count; n++) {
      const folder = join(options.folder, `gateway-${n}`);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "gateway.json"), JSON.stringify(configOf(options)));
      nodes.push(new GatewayNode(await freePort(), folder, options));
    }
    for (const node of nodes) node.start();
    await Promise.all(nodes.map((node) => node.up()));
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, urls: nodes.map(({ url }) => url), [Symbol.asyncDispose]: stop };
}
