import { Agent, request } from "node:http";
import { buildServer } from "./builds.ts";
import { nextMessage } from "./children.ts";
import { type Figure, type Gate, measure } from "./figures.ts";
import { REST_KEY, RPC_TOKEN, type Started, startGateway, untilAnswers, WEBHOOK_TOKEN } from "./gateways.ts";
import type { BenchOptions } from "./options.ts";

// P0: the bytes that one message allocates on the JavaScript heap. Neither another load nor a slower machine changes the figure.

const KIB = 1_024;
const AT_ONCE = 20;
const USERS = 1_000;
/** After this, the compiler has optimised the code. */
const FIRST = 6_000;

type Job = { path: string; token: string; body: (n: number) => object; atMost: number };

const message = "Hello there, this is a message of about one hundred characters to be sent to it.";
/** `atMost` is in KiB. */
export const JOBS = {
  rpc: {
    path: "/rpc",
    token: RPC_TOKEN,
    body: (n) => {
      const params = { agentName: "main", channel: "web", userId: `user-${n % USERS}`, message };
      return { jsonrpc: "2.0", id: "1", method: "agent.sendMessage", params };
    },
    atMost: 28,
  },
  wake: {
    path: "/hooks/wake",
    token: WEBHOOK_TOKEN,
    body: () => ({ text: "Build 4711 failed on main", metadata: { source: "ci", event: "build.failed" } }),
    atMost: 22,
  },
  chat: {
    path: "/api/v1/chat/send",
    token: REST_KEY,
    body: (n) => ({ message: "Hello there", user_id: `user-${n % USERS}` }),
    atMost: 32,
  },
} as const satisfies Record<string, Job>;

/** Sends a job's message `count` times, some at once; throws if one is not answered with 200. */
async function send({ url }: Started, { path, token, body }: Job, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  let sent = 0;
  const sendOne = () =>
    new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const call = request(url + path, { method: "POST", headers, agent });
      call.on("error", reject);
      call.on("response", (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`${path} answered ${answer.statusCode}`));
        answer.resume().on("end", resolve).on("error", reject);
      });
      call.end(JSON.stringify(body(sent)));
    });
  const work = async () => {
    while (sent++ < count) await sendOne();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  agent.destroy();
}

/** The KiB that one message of a job allocates. */
export async function allocatedBy(job: keyof typeof JOBS, count: number): Promise<number> {
  await using gateway = await startGateway({
    agent: { heartbeat: { every: "1s" } },
    gateway: { defaultAgent: "main" },
    webhooks: { rateLimit: { maxRequests: 0 } },
    limits: { turnsPerSession: 100_000, turns: 10_000_000, events: 10_000_000 },
    nodeArgs: ["--import", `./${await buildServer("sample-allocations")}`],
    channel: true,
  });
  const ask = async (word: string): Promise<number> => {
    const answer = nextMessage<number>(gateway.child);
    gateway.child.send(word);
    return await answer;
  };
  await untilAnswers(`${gateway.url}/readyz`);
  await send(gateway, JOBS[job], FIRST);
  await ask("begin");
  await send(gateway, JOBS[job], count);
  return (await ask("end")) / KIB / count;
}

async function measureJobs({ rounds, short, say }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const job of ["rpc", "wake", "chat"] as const) {
    const values: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      say(`P0: messages of ${job}, round ${round} of ${rounds}`);
      values.push(await allocatedBy(job, short ? 5_000 : 20_000));
    }
    const bound = { atMost: JOBS[job].atMost };
    figures.push(measure(values, { gate: "P0", figure: `allocated for a message, ${job}`, unit: "KiB", bound }));
  }
  return figures;
}

export const ALLOCATION_GATES: readonly Gate[] = [
  { gate: "P0", figure: "allocated for a message", measure: measureJobs },
];
