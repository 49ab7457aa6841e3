import { figureOf } from "./against-bare.ts";
import { buildClient } from "./builds.ts";
import { statusCall } from "./calls.ts";
import { nextMessage, startOnClientCore, stopChild } from "./children.ts";
import type { SocketOptions, SocketReport, SocketRun } from "./clients/socket-load.ts";
import { compare, type Figure, type Gate, median } from "./figures.ts";
import { RPC_TOKEN, type Started, startBare, startGateway, untilAnswers } from "./gateways.ts";
import { type Cost, type Report, requireClean, requireOwnMachine, withCost } from "./load.ts";
import { whyNoCores } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const SETTLE_S = 1;
const MANY = { connections: 50, inFlight: 32 };
const ALONE = { connections: 1, inFlight: 1 };
const CALL = statusCall();

type SocketLoad = Pick<Report, "rate" | "requests" | "refused" | "broken"> & Cost & { p50: number };

/** Runs calls over WebSockets for `seconds` against a server on this machine, after a warm-up with the same calls. */
async function runSockets(
  { url, pid }: Pick<Started, "url" | "pid">,
  shape: Pick<SocketOptions, "connections" | "inFlight">,
  seconds: number,
): Promise<SocketLoad> {
  requireOwnMachine(url);
  const options: SocketOptions = { ...shape, url, token: RPC_TOKEN, text: CALL.body };
  const { child } = await startOnClientCore(await buildClient("socket-load"), options);
  const run = (seconds: number): Promise<SocketReport> => {
    const report = nextMessage<SocketReport>(child);
    child.send({ seconds } satisfies SocketRun);
    return report;
  };
  try {
    await run(SETTLE_S);
    const { micros, errors, lost, ...found } = await withCost(pid, () => run(seconds));
    return { ...found, rate: (found.requests / micros) * 1e6, refused: errors, broken: lost };
  } finally {
    await stopChild(child);
  }
}

/** P5: calls over WebSockets, compared with a bare `ws` server that parses and stringifies the same messages. */
async function measureSockets({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> {
  await using bare = await startBare("bare-ws");
  const found = {
    many: [] as SocketLoad[],
    bareMany: [] as SocketLoad[],
    alone: [] as SocketLoad[],
    bareAlone: [] as SocketLoad[],
  };
  const run = async (server: Started, shape: typeof MANY): Promise<SocketLoad> => {
    const load = await runSockets(server, shape, seconds);
    requireClean(load, "P5");
    return load;
  };
  for (let round = 1; round <= rounds; round++) {
    say(`P5: round ${round} of ${rounds}`);
    await using gateway = await startGateway();
    await untilAnswers(`${gateway.url}/readyz`);
    found.bareMany.push(await run(bare, MANY));
    found.many.push(await run(gateway, MANY));
    found.bareAlone.push(await run(bare, ALONE));
    found.alone.push(await run(gateway, ALONE));
  }
  const p50 = (loads: readonly SocketLoad[]) => loads.map((load) => load.p50);
  return [
    figureOf(found.many, found.bareMany, {
      gate: "P5",
      figure: "WebSocket agent.status, 50 x 32 in flight",
      bound: { atLeast: 1, what: "x bare ws" },
    }),
    compare(p50(found.alone), p50(found.bareAlone), {
      gate: "P5",
      figure: "WebSocket agent.status alone, one at a time, p50",
      unit: "us",
      bound: { atMost: 1.4, what: "x bare ws" },
      note: `bare ${median(p50(found.bareAlone)).toFixed(0)} us`,
    }),
  ];
}

export const SOCKET_GATES: readonly Gate[] = [
  { gate: "P5", figure: "calls over WebSockets", lack: whyNoCores, measure: measureSockets },
];
