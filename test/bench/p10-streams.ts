import { request } from "node:http";
import { startBare } from "./bare.ts";
import type { Figure } from "./figures.ts";
import { REST_KEY, startGateway, untilAnswers } from "./gateways.ts";
import { idleFigures, reporting, weighIdle } from "./idle.ts";
import type { BenchOptions } from "./options.ts";
import type { Memory } from "./servers/report-memory.ts";

const HOUR_MS = 3_600_000;
const AT_MOST = 24 * 1024;

/** P10: what a stream weighs that waits for its turn's next piece, with its connection, its turn and its delivery. */
export const measureIdleStreams = async ({ rounds, short, say }: BenchOptions): Promise<Figure[]> => {
  const streams = short ? 500 : 2_000;
  const own: Memory[] = [];
  const bare: Memory[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P10: ${streams} idle streams, round ${round + 1} of ${rounds}`);
    bare.push(await weighBare(streams));
    own.push(await weighGateway(streams));
  }
  return idleFigures(own, bare, {
    what: "idle SSE stream",
    of: streams,
    beside: "a bare node:http stream",
    holds: "with its socket, turn, session and delivery",
    atMost: AT_MOST,
  });
};

const weighGateway = async (streams: number): Promise<Memory> => {
  const agent = { concurrency: 10_000, deadline: "2h", echo: { delayMs: HOUR_MS } };
  await using server = await startGateway({ agent, channel: true, nodeArgs: await reporting() });
  await untilAnswers(`${server.url}/readyz`);
  return await weighIdle(server, streams, () => openStream(`${server.url}/api/v1/chat/send`));
};

const weighBare = async (streams: number): Promise<Memory> => {
  await using server = await startBare("bare-http", await reporting());
  return await weighIdle(server, streams, () => openStream(`${server.url}/stream`));
};

/** Opens a stream whose turn will be silent; resolves with its first event. */
const openStream = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${REST_KEY}`, "content-type": "application/json" };
    const sent = request(url, { method: "POST", headers, agent: false });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`));
      // The gateway is ended under these streams when its round is over.
      answer.on("error", () => {});
      answer.once("data", () => resolve());
    });
    sent.end(JSON.stringify({ message: "What changed since yesterday?", stream: true }));
  });
