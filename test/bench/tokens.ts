import { buildClient } from "./builds.ts";
import { nextMessage, startOnClientCore, stopChild } from "./children.ts";
import type { TokenOptions, TokenReport } from "./clients/token-streams.ts";
import { type Figure, type Gate, measure, median } from "./figures.ts";
import { REST_KEY, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { type Cost, requireOwnMachine, withCost } from "./load.ts";
import { whyNoCores } from "./machine.ts";
import { modelAt, PIECES, startStandIn } from "./models.ts";
import type { BenchOptions } from "./options.ts";
import { AT_ONCE_WORD, FEW_PIECES, piecesOf } from "./stand-in-words.ts";

const STREAMS = 200;
const PER_SECOND = 50;
const RAMP_MS = 1_000;
type Streams = Pick<TokenOptions, "streams" | "turns" | "pieces" | "rampMs" | "perSecond">;
type Door = Pick<TokenOptions, "path" | "headers" | "body" | "event" | "text">;
type TokenLoad = TokenReport & Cost;

/** Streams that are read one at a time. */
const ALONE: Streams = { streams: 1, turns: 2_000, pieces: PIECES, rampMs: 1 };
/** The number of turns before the measurement, so that V8 has compiled the code. */
const WARM_UP_ALONE: Streams = { ...ALONE, turns: 4_000 };
const WARM_UP_TURNS: Streams = { streams: 16, turns: 500, pieces: FEW_PIECES, rampMs: 1 };

/** Replies of the echo agent, whose pieces all arrive at once. */
const CRUMBS = 200;
const IN_CRUMBS: Streams = { streams: 1, turns: 2_000, pieces: CRUMBS, rampMs: 1 };

const JSON_TYPE = { "content-type": "application/json" };
const QUESTION = "What changed since yesterday? #{stream}";

/** A turn of the gateway, read as its events. */
const GATEWAY: Door = {
  path: "/api/v1/chat/send",
  headers: { ...JSON_TYPE, authorization: `Bearer ${REST_KEY}` },
  body: JSON.stringify({ message: QUESTION, stream: true }),
  event: "event: message.delta",
  text: '"text":"',
};

/** A turn that is answered at once, even by a stand-in with a pace. */
const QUICK: Door = { ...GATEWAY, body: JSON.stringify({ message: `Answer ${AT_ONCE_WORD}.`, stream: true }) };

/** A turn of the echo agent, which repeats the pieces. */
const ECHO: Door = {
  ...GATEWAY,
  body: JSON.stringify({ message: piecesOf(undefined, CRUMBS).join(""), stream: true }),
};

/** The same request to the stand-in itself. */
const MODEL: Door = {
  path: "/v1/chat/completions",
  headers: JSON_TYPE,
  body: JSON.stringify({ model: "stand-in", messages: [{ role: "user", content: QUESTION }], stream: true }),
  event: '"delta":{"content":"',
  text: '"content":"',
};

/** Reads streams from a server on this machine, and measures the server's cost per piece. A piece that is lost or out of order is an error. */
async function readStreams(
  { url, pid }: Pick<Started, "url" | "pid">,
  door: Door,
  streams: Streams,
): Promise<TokenLoad> {
  requireOwnMachine(url);
  const options: TokenOptions = { ...door, ...streams, url, isNamed: streams.perSecond !== undefined };
  const { child } = await startOnClientCore(await buildClient("token-streams"), options);
  try {
    const load = await withCost(pid, async () => {
      const report = nextMessage<TokenReport>(child);
      child.send("go");
      const found = await report;
      return { ...found, requests: found.pieces };
    });
    const expected = streams.streams * streams.turns * streams.pieces;
    if (load.wrong > 0 || load.pieces !== expected)
      throw new Error(`P9: ${load.wrong} streams or pieces were wrong, ${load.pieces} of ${expected} pieces came`);
    return load;
  } finally {
    await stopChild(child);
  }
}

/** Reads from a new gateway, after a warm-up in which V8 compiles the code of a stream. */
async function readGateway(url: string, streams: Streams): Promise<TokenLoad> {
  await using gateway = await startGateway(modelAt(url));
  await untilAnswers(`${gateway.url}/readyz`);
  if (streams === ALONE) await readStreams(gateway, GATEWAY, WARM_UP_ALONE);
  else {
    await readStreams(gateway, QUICK, WARM_UP_TURNS);
    // So that the gateway has opened a connection for each of them in advance.
    await readStreams(gateway, GATEWAY, { ...streams, rampMs: 500 });
  }
  return await readStreams(gateway, GATEWAY, streams);
}

/** Reads streams of the echo agent, after the same number of streams as a warm-up. */
async function readCrumbs(): Promise<TokenLoad> {
  await using gateway = await startGateway({ agent: { backend: "echo", echo: { chunks: CRUMBS } } });
  await untilAnswers(`${gateway.url}/readyz`);
  await readStreams(gateway, ECHO, IN_CRUMBS);
  return await readStreams(gateway, ECHO, IN_CRUMBS);
}

/** P9: streams, each piece of which must be the next of its own stream. */
async function measureTokens({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> {
  const many = { streams: STREAMS, turns: 1, pieces: seconds * PER_SECOND, rampMs: RAMP_MS, perSecond: PER_SECOND };
  const none = (): TokenLoad[] => [];
  const found = { crumbs: none(), many: none(), directMany: none(), alone: none(), directAlone: none() };
  for (let round = 1; round <= rounds; round++) {
    say(`P9: round ${round} of ${rounds}`);
    found.crumbs.push(await readCrumbs());
    await using atOnce = await startStandIn({ pieces: PIECES });
    await using paced = await startStandIn({ pieces: many.pieces, perSecond: PER_SECOND });
    await readStreams(atOnce, MODEL, WARM_UP_ALONE);
    found.directAlone.push(await readStreams(atOnce, MODEL, ALONE));
    found.alone.push(await readGateway(atOnce.url, ALONE));
    found.directMany.push(await readStreams(paced, MODEL, many));
    found.many.push(await readGateway(paced.url, many));
  }
  const events = median(found.many.map((load) => load.events / load.pieces)).toFixed(2);
  const busy = Math.round(median(found.many.map((load) => load.busy)) * 100);
  return [
    measure(
      found.many.map(({ cpu }) => cpu),
      {
        gate: "P9",
        figure: `CPU a token of a model, ${STREAMS} streams x ${PER_SECOND} a second`,
        unit: "us",
        bound: { atMost: 80 },
        note: `none lost or out of order; ${events} events per token; the gateway used ${busy} % of its core`,
      },
    ),
    measure(
      found.crumbs.map(({ cpu }) => cpu * CRUMBS),
      {
        gate: "P9",
        figure: `CPU a stream of ${CRUMBS} pieces that come at once, echo agent`,
        unit: "us",
        note: `in ${median(found.crumbs.map((load) => (load.events / load.pieces) * CRUMBS)).toFixed(0)} events`,
      },
    ),
    firstFigure("first token, one stream at a time: added p50", found.alone, found.directAlone),
    firstFigure(`first token, among ${STREAMS} streams: added p50`, found.many, found.directMany),
  ];
}

function firstFigure(figure: string, loads: readonly TokenLoad[], direct: readonly TokenLoad[]): Figure {
  const p50 = (of: readonly TokenLoad[]) => of.map(({ first }) => first / 1_000);
  const added = p50(loads).map((time, round) => time - (p50(direct)[round] as number));
  const note = `the model itself ${median(p50(direct)).toFixed(2)} ms; through the gateway ${median(p50(loads)).toFixed(2)} ms`;
  return measure(added, { gate: "P9", figure, unit: "ms", bound: { atMost: 2 }, note });
}

export const TOKEN_GATES: readonly Gate[] = [
  { gate: "P9", figure: "streams of tokens", lack: whyNoCores, measure: measureTokens },
];
