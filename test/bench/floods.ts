import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { buildClient } from "./builds.ts";
import { startOnClientCore, stopChild } from "./children.ts";
import type { Flood } from "./clients/http2-flood.ts";
import { compare, type Figure, type Gate, median } from "./figures.ts";
import { type Started, startBare, startGateway, untilAnswers } from "./gateways.ts";
import { whyNoCores } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

type Shape = Omit<Flood, "url"> & { figure: string };

const SHAPES: readonly Shape[] = [
  {
    figure: "another's request under heads of 900 pairs, 3 connections, 0.65 MB/s, p50",
    connections: 3,
    pairs: 900,
    rate: 650_000,
    isReset: false,
  },
  {
    figure: "the same under heads of 120 pairs, which Node accepts, 0.15 MB/s",
    connections: 3,
    pairs: 120,
    rate: 150_000,
    isReset: false,
  },
  {
    figure: "the same under 20 clients that cancel 1 200 requests each and reconnect",
    connections: 20,
    pairs: 0,
    rate: 0,
    isReset: true,
  },
];
/** The time of a request to an idle server varies by more than that between rounds. */
const LEAST_MS = 1;
const SETTLE_MS = 500;
const PAUSE_MS = 5;

/** P18: the time of another client's request during a flood over HTTP/2, compared with a bare node:http2 under the same flood. */
async function measureFloods({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const shape of SHAPES) {
    const [own, bare]: [number[], number[]] = [[], []];
    for (let round = 1; round <= rounds; round++) {
      say(`P18: ${shape.figure}, round ${round} of ${rounds}`);
      {
        await using server = await startBare("bare-http2-any");
        bare.push(await waitUnder(shape, server, seconds));
      }
      await using server = await startGateway();
      await untilAnswers(`${server.url}/readyz`);
      own.push(await waitUnder(shape, server, seconds));
    }
    figures.push(
      compare(own.map(atLeast), bare.map(atLeast), {
        gate: "P18",
        figure: shape.figure,
        unit: "ms",
        bound: { atMost: 2, what: "x bare" },
        note: `a bare node:http2 ${median(bare).toFixed(2)} ms; less than ${LEAST_MS} ms counts as ${LEAST_MS} ms`,
      }),
    );
  }
  return figures;
}

function atLeast(ms: number): number {
  return Math.max(ms, LEAST_MS);
}

/** The median time of a request on a connection outside of the flood. */
async function waitUnder({ figure: _, ...flood }: Shape, { url }: Started, seconds: number): Promise<number> {
  const session = connect(url);
  await once(session, "connect");
  const { child } = await startOnClientCore(await buildClient("http2-flood"), { ...flood, url } satisfies Flood);
  try {
    await pause(SETTLE_MS);
    const waits: number[] = [];
    for (const end = performance.now() + seconds * 1_000; performance.now() < end; await pause(PAUSE_MS))
      waits.push(await ask(session));
    return median(waits);
  } finally {
    await stopChild(child);
    session.destroy();
  }
}

async function ask(session: ClientHttp2Session): Promise<number> {
  const began = performance.now();
  const stream = session.request({ ":path": "/healthz" });
  const [headers] = (await once(stream, "response")) as [{ ":status"?: number }];
  if (headers[":status"] !== 200) throw new Error(`another's request was answered ${headers[":status"]}`);
  stream.resume();
  await once(stream, "close");
  return performance.now() - began;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export const FLOOD_GATES: readonly Gate[] = [
  { gate: "P18", figure: "another's request under a flood", lack: whyNoCores, measure: measureFloods },
];
