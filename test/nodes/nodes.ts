import { expect } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { TestPostgres } from "#test/harness/postgres.ts";
import { createRpc, type Rpc } from "#test/harness/rpc.ts";

/** One of several gateways. The test controls the turns of its agent `live`, one at a time. */
export type TestNode = TestGateway & {
  rpc: Rpc;
  /** The next turn of `live` on this gateway. */
  next(): Promise<Played>;
  /** Occupies the gateway's place for `live` until the end, so that other turns run elsewhere. */
  fill(): Promise<Played>;
};

type Options = { config?: SomeConfig; url?: string };

/** Gateways on one database, as behind a load balancer: `await using nodes = await startNodes(server, 3)`. */
export async function startNodes(server: Pick<TestPostgres, "createSchema">, count: number, options: Options = {}) {
  const url = options.url ?? (await server.createSchema());
  const all: TestNode[] = [];
  const start = async (): Promise<TestNode> => {
    const node = await startNode(url, all.length, options.config);
    all.push(node);
    return node;
  };
  for (let n = 0; n < count; n++) await start();
  return {
    all: all as readonly TestNode[],
    /** The gateway that the load balancer chooses for the nth request. */
    at: (n: number): TestNode => all[n % all.length] as TestNode,
    url,
    start,
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(all.map((node) => node[Symbol.asyncDispose]()));
    },
  };
}

export type Nodes = Awaited<ReturnType<typeof startNodes>>;

async function startNode(url: string, index: number, config: SomeConfig = {}): Promise<TestNode> {
  const puppet = createPuppet();
  const agents = { main: { backend: "echo" }, live: { backend: "echo", concurrency: 1 }, ...config.agents } as const;
  const gateway = await startGateway({
    config: {
      ...config,
      agents,
      gateway: { defaultAgent: "main", ...config.gateway },
      store: { type: "postgres", url },
    },
    makeBackend: (name, agent) => (name === "live" ? puppet.backend : createEchoBackend(agent.echo)),
  });
  const rpc = createRpc(gateway.url);
  return {
    ...gateway,
    rpc,
    next: puppet.next,
    async fill() {
      const params = { agentName: "live", message: "stay", sessionId: `filled-${index}` };
      // A gateway may still be opening its connections to the database.
      await expect.poll(async () => (await rpc.call("agent.sendMessage", params)).result).toBeDefined();
      return puppet.next();
    },
  };
}
