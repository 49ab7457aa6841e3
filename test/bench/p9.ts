import { type Figure, measure, median, unmeasured } from "./figures.ts";
import { type GatewayWish, startGateway, untilAnswers } from "./gateways.ts";
import { whyNoCores } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { modelAt, PIECES, serviceAt } from "./proxied.ts";
import { FEW_PIECES } from "./stand-in-words.ts";
import { GATEWAY, MODEL, QUICK, readStreams, requireWhole, startStandIn, type TokenLoad } from "./token-load.ts";

const STREAMS = 1_000;
const PER_SECOND = 50;
const NAMES = {
  model: `CPU a token of a model, ${STREAMS} streams x ${PER_SECOND} a second`,
  service: `CPU a token of an agent's service, ${STREAMS} streams x ${PER_SECOND} a second`,
  first: "first token, one stream at a time: added p50",
  firstOfMany: `first token, among ${STREAMS} streams: added p50`,
} as const;
const RAMP_MS = 3_000;
/** Of the streams that are read one at a time. */
const ALONE = { streams: 1, turns: 2_000, pieces: PIECES, rampMs: 1 };
const WARM_UP = { ...ALONE, turns: 4_000 };
/**
 * So much is read before the streams that count: short turns, and as many streams. After those streams alone V8 compiled 214 functions more while it was
 * measured, and V8's own threads were an eighth of the figure. As many, as whoever reads from the model itself has opened a connection for each of them
 * beforehand: with fewer the gateway opens its own meanwhile, and the two are not alike.
 */
const WARM_UP_TURNS = { streams: 16, turns: 500, pieces: FEW_PIECES, rampMs: 1 };

/** P9: streams, each piece of which is held to be the next of its own stream. */
export const measureTokens = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoCores();
  if (why) return Object.values(NAMES).map((name) => unmeasured("P9", name, why));
  const { rounds, seconds, say } = options;
  const many = { streams: STREAMS, turns: 1, pieces: seconds * PER_SECOND, rampMs: RAMP_MS, perSecond: PER_SECOND };
  const of = { direct: [] as TokenLoad[], model: [] as TokenLoad[], service: [] as TokenLoad[] };
  const first = { direct: [] as TokenLoad[], model: [] as TokenLoad[] };
  for (let round = 1; round <= rounds; round++) {
    say(`P9: round ${round} of ${rounds}`);
    await using atOnce = await startStandIn({ pieces: PIECES });
    await using paced = await startStandIn({ pieces: many.pieces, perSecond: PER_SECOND });
    await readStreams(atOnce, MODEL, WARM_UP);
    first.direct.push(await whole(readStreams(atOnce, MODEL, ALONE), ALONE));
    first.model.push(await whole(readGateway(modelAt(atOnce.url), ALONE), ALONE));
    of.direct.push(await whole(readStreams(paced, MODEL, many), many));
    of.model.push(await whole(readGateway(modelAt(paced.url), many), many));
    of.service.push(await whole(readGateway(serviceAt(paced.url), many), many));
  }
  return [
    cpuFigure("model", of.model, of.direct),
    cpuFigure("service", of.service, of.direct),
    firstFigure("first", first.model, first.direct),
    firstFigure("firstOfMany", of.model, of.direct),
  ];
};

type Streams = Parameters<typeof readStreams>[2];

const whole = async (reading: Promise<TokenLoad>, { streams, turns, pieces }: Streams): Promise<TokenLoad> => {
  const load = await reading;
  requireWhole(load, streams * turns * pieces, "P9");
  return load;
};

/** Reads from a gateway of its own, when it has warmed up with as much as V8 needs to compile what a stream goes through. */
const readGateway = async (wish: GatewayWish, streams: Streams): Promise<TokenLoad> => {
  await using gateway = await startGateway(wish);
  await untilAnswers(`${gateway.url}/readyz`);
  if (streams === ALONE) await readStreams(gateway, GATEWAY, WARM_UP);
  else {
    await whole(readStreams(gateway, QUICK, WARM_UP_TURNS), WARM_UP_TURNS);
    await readStreams(gateway, GATEWAY, { ...streams, rampMs: 500 });
  }
  return await readStreams(gateway, GATEWAY, streams);
};

const cpuFigure = (name: "model" | "service", loads: readonly TokenLoad[], direct: readonly TokenLoad[]): Figure => {
  const middle = (of: readonly TokenLoad[], pick: (load: TokenLoad) => number) => median(of.map(pick));
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const ms = (of: readonly TokenLoad[]) => (middle(of, ({ late }) => late.p99) / 1_000).toFixed(0);
  const tokenMs = (of: readonly TokenLoad[]) =>
    `${middle(of, ({ pieceLate }) => pieceLate.p50)} ms late (p99 ${middle(of, ({ pieceLate }) => pieceLate.p99)})`;
  return measure(
    loads.map(({ cpu }) => cpu),
    {
      gate: "P9",
      figure: NAMES[name],
      unit: "us",
      bound: { atMost: 60 },
      note:
        `none lost or out of order; ${middle(loads, (load) => (load.pieces / load.micros) * 1e6).toFixed(0)} tokens/s in ` +
        `${middle(loads, (load) => load.events / load.pieces).toFixed(2)} events a token, each ` +
        `${tokenMs(loads)}, without the gateway ${tokenMs(direct)}; a stream ended at most ${ms(loads)} ms late (p99), ` +
        `without the gateway ${ms(direct)} ms; the gateway used ${percent(middle(loads, ({ busy }) => busy))} of its core, ` +
        `the client ${percent(middle(loads, ({ clientBusy }) => clientBusy))}`,
    },
  );
};

const firstFigure = (
  name: "first" | "firstOfMany",
  loads: readonly TokenLoad[],
  direct: readonly TokenLoad[],
): Figure => {
  const p50 = (of: readonly TokenLoad[]) => of.map(({ first }) => first.p50 / 1_000);
  const p99 = (of: readonly TokenLoad[]) => (median(of.map(({ first }) => first.p99)) / 1_000).toFixed(2);
  const added = p50(loads).map((time, round) => time - (p50(direct)[round] as number));
  return measure(added, {
    gate: "P9",
    figure: NAMES[name],
    unit: "ms",
    bound: { atMost: 2 },
    note: `the model itself ${median(p50(direct)).toFixed(2)} ms, p99 ${p99(direct)}; through the gateway ${median(p50(loads)).toFixed(2)} ms, p99 ${p99(loads)}`,
  });
};
