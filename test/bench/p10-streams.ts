import { request } from "node:http";
import { buildServer } from "./builds.ts";
import { nextMessage } from "./children.ts";
import { type Figure, measure } from "./figures.ts";
import { REST_KEY, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { rssOf } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Memory } from "./servers/report-memory.ts";

// The first streams also pay for what is made once: code, pools, tables.
const FIRST = 200;
const HOUR_MS = 3_600_000;
const AT_MOST = 16 * 1024;

/** P10: what a stream weighs that waits for its turn's next piece, with its connection, its turn and its delivery. */
export const measureIdleStreams = async ({ rounds, short, say }: BenchOptions): Promise<Figure[]> => {
  const streams = short ? 500 : 1_000;
  const rss: number[] = [];
  const heap: number[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P10: ${streams} idle streams, round ${round + 1} of ${rounds}`);
    const weight = await weighRound(streams);
    rss.push(weight.rss);
    heap.push(weight.heap);
  }
  const row = { gate: "P10", unit: "bytes", bound: { atMost: AT_MOST } };
  return [
    measure(rss, {
      ...row,
      figure: `idle SSE stream, RSS, of ${streams}`,
      note: "with its socket, turn, session and delivery",
    }),
    measure(heap, { ...row, figure: `idle SSE stream, heap, of ${streams}` }),
  ];
};

const weighRound = async (streams: number): Promise<Memory> => {
  const hook = await buildServer("report-memory");
  const agent = { concurrency: 10_000, deadline: "2h", echo: { delayMs: HOUR_MS } };
  await using gateway = await startGateway({
    agent,
    channel: true,
    nodeArgs: ["--expose-gc", "--import", `./${hook}`],
  });
  await untilAnswers(`${gateway.url}/readyz`);
  await openStreams(gateway.url, FIRST);
  const before = await weigh(gateway);
  await openStreams(gateway.url, streams);
  const after = await weigh(gateway);
  return { rss: (after.rss - before.rss) / streams, heap: (after.heap - before.heap) / streams };
};

const weigh = async ({ child, pid }: Started): Promise<Memory> => {
  const told = nextMessage<Memory>(child);
  child.send("weigh");
  return { ...(await told), rss: rssOf(pid) };
};

const AT_ONCE = 50;

/** Opens so many streams, each a turn that will be silent; resolves when each has its first event. */
const openStreams = async (url: string, count: number): Promise<void> => {
  for (let opened = 0; opened < count; opened += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - opened) }, () => openStream(url)));
  }
};

const openStream = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${REST_KEY}`, "content-type": "application/json" };
    const sent = request(`${url}/api/v1/chat/send`, { method: "POST", headers, agent: false });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`));
      // The gateway is ended under these streams when its round is over.
      answer.on("error", () => {});
      answer.once("data", () => resolve());
    });
    sent.end(JSON.stringify({ message: "What changed since yesterday?", stream: true }));
  });
