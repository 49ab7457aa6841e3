import { expect } from "vitest";
import { callers, TOKENS } from "./browser.ts";

/** Calls of a batch. */
const TOGETHER = 50;
const RUNNING = 4;

/** Fills a gateway with sessions of one message each, and as many deliveries. */
export async function fill({ url }: { url: string }, count: number): Promise<void> {
  let left = count;
  const send = async () => {
    while (left > 0) {
      left -= TOGETHER;
      await sendAll(url, callsOf(left, TOGETHER));
    }
  };
  await Promise.all(Array.from({ length: RUNNING }, send));
}

type Call = { id: number };

/** Calls that send a message each, every one to another session. */
function callsOf(first: number, count: number): Call[] {
  return Array.from({ length: count }, (_, n) => ({
    jsonrpc: "2.0",
    id: first + n,
    method: "agent.sendMessage",
    params: { agentName: "main", message: "Hello", channel: "load", userId: `user-${first + n}` },
  }));
}

/** Sends calls until none is refused because the gateway is busy. */
async function sendAll(url: string, calls: Call[]): Promise<void> {
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
}

/** Waits until no turn is left. */
export async function untilIdle(gateway: { url: string }): Promise<void> {
  const { rpc } = callers(gateway);
  const left = async () => {
    const { agents } = (await rpc("agent.list", {})) as { agents: { queued: number; running: number }[] };
    return agents.reduce((sum, { queued, running }) => sum + queued + running, 0);
  };
  await expect.poll(left, { timeout: 120_000, interval: 200 }).toBe(0);
}

const BEAT_MS = 50;

/** Sends a number of requests a second for a while. Returns the number of answered ones. */
export async function sendSteadily(
  { url }: { url: string },
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<number> {
  const together = (perSecond * BEAT_MS) / 1_000;
  const begun = performance.now();
  const sent: Promise<void>[] = [];
  for (let beat = 0; beat < (seconds * 1_000) / BEAT_MS; beat++) {
    await new Promise((resolve) => setTimeout(resolve, begun + beat * BEAT_MS - performance.now()));
    sent.push(sendAll(url, callsOf(beat * together, together)));
  }
  await Promise.all(sent);
  return sent.length * together;
}
