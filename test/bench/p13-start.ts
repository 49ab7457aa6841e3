import { type Call, chatCall, statusCall } from "./calls.ts";
import { type Figure, measure } from "./figures.ts";
import { startGateway, untilAnswers } from "./gateways.ts";
import { rssOf } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const STARTS = 7;
const REST_AFTER_MS = 1_000;
const MB = 1e6;

/** P13: from the start of the process to its first answers, and what it weighs when it is warm and nothing is asked. */
export const measureStart = async ({ short, say }: BenchOptions): Promise<Figure[]> => {
  const [rpc, rest, memory]: [number[], number[], number[]] = [[], [], []];
  say(`P13: ${short ? 3 : STARTS} starts`);
  for (let start = 0; start < (short ? 3 : STARTS); start++) {
    const began = performance.now();
    await using gateway = await startGateway();
    await untilAnswered(gateway.url, statusCall());
    rpc.push(performance.now() - began);
    // Sent before the contract is compiled: such a call waits for it.
    await untilAnswered(gateway.url, chatCall(0));
    rest.push(performance.now() - began);
    await untilAnswers(`${gateway.url}/readyz`);
    await new Promise((resolve) => setTimeout(resolve, REST_AFTER_MS));
    memory.push(rssOf(gateway.pid) / MB);
  }
  return [
    measure(rpc, { gate: "P13", figure: "start to first answer of /rpc", unit: "ms", bound: { atMost: 300 } }),
    measure(rest, { gate: "P13", figure: "start to first answer of REST", unit: "ms", bound: { atMost: 1_000 } }),
    measure(memory, { gate: "P13", figure: "idle memory after the warm-up, RSS", unit: "MB", bound: { atMost: 100 } }),
  ];
};

const untilAnswered = (url: string, { path, headers, body }: Call): Promise<void> =>
  untilAnswers(url + path, { method: "POST", headers, body });
