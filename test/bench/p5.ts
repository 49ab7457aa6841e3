import { figureOf } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { type Call, messageCall, statusCall } from "./calls.ts";
import { compare, type Figure, median, unmeasured } from "./figures.ts";
import { type Started, startGateway, untilAnswers } from "./gateways.ts";
import { requireClean } from "./load.ts";
import { whyNoCores } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { runSockets, type SocketLoad } from "./socket-load.ts";
import { completedTurns, droppedLines, requireEnded } from "./turns.ts";

const NAMES = {
  status: "WebSocket agent.status, 50 x 32 in flight",
  alone: "WebSocket agent.status alone, one at a time, p50",
  message: "WebSocket agent.sendMessage with its push, 50 x 32 in flight",
} as const;
const MANY = { connections: 50, inFlight: 32 };
const ALONE = { connections: 1, inFlight: 1 };
const SESSIONS = 1_000;

type Pair = { gateway: SocketLoad[]; bare: SocketLoad[] };

/** P5: calls over WebSockets, beside a bare `ws` server that parses and stringifies the same messages. */
export const measureSockets = async ({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> => {
  const why = whyNoCores();
  if (why) return Object.values(NAMES).map((name) => unmeasured("P5", name, why));
  await using bare = await startBare("bare-ws");
  const of = { status: pair(), alone: pair(), message: pair() };
  const run = async (server: Started, call: Call, shape: typeof MANY, lasting = seconds): Promise<SocketLoad> => {
    const isPushed = server !== bare && call !== STATUS;
    const wish = { ...shape, text: call.body, sessions: SESSIONS, isPushed };
    const load = await runSockets(server, wish, lasting);
    requireClean(load, "P5");
    return load;
  };
  const dropped: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`P5: round ${round} of ${rounds}`);
    await using gateway = await startGateway();
    await untilAnswers(`${gateway.url}/readyz`);
    for (const [name, shape] of [
      ["status", MANY],
      ["alone", ALONE],
    ] as const) {
      of[name].bare.push(await run(bare, STATUS, shape));
      of[name].gateway.push(await run(gateway, STATUS, shape));
    }
    const before = await completedTurns(gateway.url);
    of.message.bare.push(await run(bare, MESSAGE, MANY));
    const sent = await run(gateway, MESSAGE, MANY);
    of.message.gateway.push(sent);
    await requireEnded(gateway.url, before + sent.requests);
    dropped.push(await droppedLines(gateway.url));
  }
  return [
    figureOf(of.status.gateway, of.status.bare, {
      gate: "P5",
      figure: NAMES.status,
      bound: { atLeast: 1, what: "x bare ws" },
      note: clientOf(of.status),
    }),
    aloneOf(of.alone),
    figureOf(of.message.gateway, of.message.bare, {
      gate: "P5",
      figure: NAMES.message,
      note:
        "no gate: a message, its answer and the end of its turn, over 1 000 sessions, beside one message and its echo; log lines " +
        `dropped by round: ${dropped.join(", ")}; ${clientOf(of.message)}`,
    }),
  ];
};

const STATUS = statusCall();
const MESSAGE = messageCall();
const pair = (): Pair => ({ gateway: [], bare: [] });

const aloneOf = ({ gateway, bare }: Pair): Figure => {
  const p50 = (loads: readonly SocketLoad[]) => loads.map((load) => load.p50);
  return compare(p50(gateway), p50(bare), {
    gate: "P5",
    figure: NAMES.alone,
    unit: "us",
    bound: { atMost: 1.3, what: "x bare ws" },
    note: `bare ${median(p50(bare)).toFixed(0)} us`,
  });
};

const clientOf = ({ gateway, bare }: Pair): string => {
  const busy = (loads: readonly SocketLoad[]) => Math.round(median(loads.map((load) => load.clientBusy)) * 100);
  return `the client used ${busy(gateway)} % of its core, with the bare server ${busy(bare)} %`;
};
