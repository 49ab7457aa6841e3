import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type FleetOptions, type GatewayNode, startFleet } from "#test/crash/fleet.ts";
import { SECRETS } from "#test/crash/requests.ts";
import { createHooks, type HookClient } from "#test/harness/hooks.ts";
import { type LogRecord, main } from "#test/harness/process.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRest } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";

export type NodesOptions = Partial<Pick<FleetOptions, "store" | "count" | "env" | "wrap" | "agents" | "more">> & {
  /** The context of the test, for concurrent tests. */
  onFinished?: typeof onTestFinished;
};

/** A file store next to the configuration. */
export const SQLITE = { type: "sqlite", path: "../gateway.db" };

/** Gateways as processes, with a temporary folder that is also deleted if the test runs out of time. */
export async function startNodes({
  store = SQLITE,
  count = 1,
  onFinished = onTestFinished,
  ...options
}: NodesOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), "gateway-faults-"));
  const env = { LOG_LEVEL: "debug", ...options.env };
  const fleet = await startFleet({ main, folder, store, count, ...options, env });
  let isGone = false;
  const dispose = async () => {
    if (isGone) return;
    isGone = true;
    await fleet[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  };
  onFinished(dispose);
  const [first, second, third] = fleet.nodes as [GatewayNode, GatewayNode, GatewayNode];
  return { folder, nodes: fleet.nodes, first, second, third, [Symbol.asyncDispose]: dispose };
}

/** All surfaces of one gateway; its answers are validated against the contract. */
export function clientOf({ url }: GatewayNode) {
  const rest = createRest(url, SECRETS.key);
  const hooks = createHooks(url);
  const withToken =
    (send: (body: unknown, sending: object) => Promise<Reply>) =>
    (body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
      send(body, { token: SECRETS.webhookToken, headers });
  return {
    rest,
    rpc: createRpc(url, SECRETS.rpcToken),
    wake: withToken(hooks.wake satisfies HookClient["wake"]),
    agent: withToken(hooks.agent),
    ready: async () => (await fetch(`${url}/readyz`)).status,
    turn: async (turnId: string) => (await rest.call("turns.get", { path: { turn_id: turnId } })).json,
    event: async (eventId: string) => (await rest.call("events.get", { path: { event_id: eventId } })).json,
    metric: async (name: string): Promise<number> => {
      const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${SECRETS.rpcToken}` } });
      const line = (await answer.text()).split("\n").find((text) => text.startsWith(`${name} `));
      return Number(line?.slice(name.length));
    },
  };
}

export type Client = ReturnType<typeof clientOf>;

/** The lines of its log with this event, from all its starts. */
export function linesOf(node: GatewayNode, event: string, fields: Record<string, unknown> = {}): LogRecord[] {
  return node
    .log()
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as LogRecord)
    .filter((line) => line.event === event && Object.entries(fields).every(([name, value]) => line[name] === value));
}

const UNTIL_MS = 45_000;

/** Polls until there is a result, for changes without a notification. The error has the last result. */
export async function until<T>(find: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  const waiting = new Error(`${UNTIL_MS / 1_000} s passed without: ${find}`);
  for (const start = performance.now(); ; ) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() - start > UNTIL_MS) throw waiting;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
