import { type Figure, measure } from "./figures.ts";
import { REST_KEY, startGateway, untilAnswers } from "./gateways.ts";
import { rssOf } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const STARTS = 7;
const REST_AFTER_MS = 1_000;
const MB = 1e6;

/** P13: from the start of the process to its first answers, and what it weighs when it is warm and nothing is asked. */
export const measureStart = async ({ short, say }: BenchOptions): Promise<Figure[]> => {
  const [health, rest, memory]: [number[], number[], number[]] = [[], [], []];
  say(`P13: ${short ? 3 : STARTS} starts`);
  for (let start = 0; start < (short ? 3 : STARTS); start++) {
    const began = performance.now();
    await using gateway = await startGateway();
    await untilAnswers(`${gateway.url}/healthz`);
    health.push(performance.now() - began);
    // Sent before the contract is compiled: such a call waits for it.
    await untilAnswers(`${gateway.url}/api/v1/chat/send`, {
      method: "POST",
      headers: { authorization: `Bearer ${REST_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ message: "Hello" }),
    });
    rest.push(performance.now() - began);
    await untilAnswers(`${gateway.url}/readyz`);
    await new Promise((resolve) => setTimeout(resolve, REST_AFTER_MS));
    memory.push(rssOf(gateway.pid) / MB);
  }
  return [
    measure(health, {
      gate: "P13",
      figure: "start to first answer of /healthz",
      unit: "ms",
      bound: { atMost: 300 },
      note: "in place of /rpc, until that surface is built",
    }),
    measure(rest, { gate: "P13", figure: "start to first answer of REST", unit: "ms", bound: { atMost: 800 } }),
    measure(memory, { gate: "P13", figure: "idle memory after the warm-up, RSS", unit: "MB", bound: { atMost: 100 } }),
  ];
};
