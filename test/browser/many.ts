import { expect } from "vitest";
import { callers, TOKENS } from "./browser.ts";

/** Calls of a batch. */
const TOGETHER = 50;
const RUNNING = 4;

/** Fills a gateway with sessions of one message each, and as many deliveries. */
export const fill = async ({ url }: { url: string }, count: number): Promise<void> => {
  let left = count;
  const send = async () => {
    while (left > 0) {
      const first = left;
      left -= TOGETHER;
      const calls = Array.from({ length: TOGETHER }, (_, n) => ({
        jsonrpc: "2.0",
        id: first - n,
        method: "agent.sendMessage",
        params: { agentName: "main", message: "Hello", channel: "load", userId: `user-${first - n}` },
      }));
      await sendAll(url, calls);
    }
  };
  await Promise.all(Array.from({ length: RUNNING }, send));
};

type Call = { id: number };

/** Sends calls until none is refused because the gateway is busy. */
const sendAll = async (url: string, calls: Call[]): Promise<void> => {
  for (let open = calls; open.length > 0; ) {
    const answer = await fetch(`${url}/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKENS.rpc}`, "content-type": "application/json" },
      body: JSON.stringify(open),
    });
    const results = (await answer.json()) as { id: number; error?: { message: string } }[];
    const refused = new Set(results.flatMap(({ id, error }) => (error ? [id] : [])));
    open = open.filter(({ id }) => refused.has(id));
    if (open.length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** Waits until no turn is left. */
export const untilIdle = async (gateway: { url: string }): Promise<void> => {
  const { rpc } = callers(gateway);
  const left = async () => {
    const { agents } = (await rpc("agent.list", {})) as { agents: { queued: number; running: number }[] };
    return agents.reduce((sum, { queued, running }) => sum + queued + running, 0);
  };
  await expect.poll(left, { timeout: 120_000, interval: 200 }).toBe(0);
};
