import { request } from "node:http";
import type { Socket } from "node:net";
import { buildServer } from "./builds.ts";
import { nextMessage, runProgram } from "./children.ts";
import { openSocket } from "./clients/open-socket.ts";
import { type Figure, type Gate, measure } from "./figures.ts";
import { type GatewayOptions, REST_KEY, RPC_TOKEN, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { pinned, SERVER_CORE } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Weight } from "./servers/store-weight.ts";

// P10: the memory of the gateway for each idle connection, message and session: the JavaScript heap, and the memory outside that it refers to.

// The first ones also include one-time costs: code, pools, tables, and a growing young generation.
const FIRST = 1_000;
const AT_ONCE = 50;
const HOUR_MS = 3_600_000;
const TURNS_PER_SESSION = 500;

/** Opens one connection; resolves when the server has received all of it. */
type Open = (server: Started) => Promise<Pick<Socket, "destroyed">>;

async function openAll(count: number, server: Started, open: Open) {
  const opened: Pick<Socket, "destroyed">[] = [];
  while (opened.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - opened.length) }, () => open(server));
    opened.push(...(await Promise.all(some)));
  }
  return opened;
}

async function heapOf({ child }: Started): Promise<number> {
  const heap = nextMessage<number>(child);
  child.send("weigh");
  return await heap;
}

/** Measures the memory of each of `count` open and silent connections. */
async function weighIdle(count: number, options: GatewayOptions, open: Open): Promise<number> {
  const nodeArgs = ["--expose-gc", "--import", `./${await buildServer("report-memory")}`];
  await using server = await startGateway({ ...options, channel: true, nodeArgs });
  await untilAnswers(`${server.url}/readyz`);
  await openAll(FIRST, server, open);
  const before = await heapOf(server);
  const opened = await openAll(count, server, open);
  const heap = (await heapOf(server)) - before;
  const closed = opened.filter(({ destroyed }) => destroyed).length;
  if (closed > 0) throw new Error(`${closed} of the connections that were to be weighed were closed`);
  return heap / count;
}

/** Opens a stream of a silent turn; resolves with its first event. */
const openStream: Open = ({ url }) =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${REST_KEY}`, "content-type": "application/json" };
    const sent = request(`${url}/api/v1/chat/send`, { method: "POST", headers, agent: false });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`));
      // The gateway is ended during these streams when its round is over.
      answer.on("error", () => {});
      answer.once("data", () => resolve(answer));
    });
    sent.end(JSON.stringify({ message: "What changed since yesterday?", stream: true }));
  });

const openIdleSocket: Open = async ({ url }) => {
  const socket = await openSocket(url, RPC_TOKEN, () => {});
  return socket.on("error", () => {});
};

async function measureIdle({ rounds, short, say }: BenchOptions): Promise<Figure[]> {
  const streams = short ? 500 : 2_000;
  const sockets = short ? 1_000 : 5_000;
  const silent = { agent: { concurrency: 10_000, deadline: "2h", echo: { delayMs: HOUR_MS } } };
  const [perStream, perSocket]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    say(`P10: ${streams} idle streams and ${sockets} idle WebSockets, round ${round} of ${rounds}`);
    perStream.push(await weighIdle(streams, silent, openStream));
    perSocket.push(await weighIdle(sockets, {}, openIdleSocket));
  }
  const row = { gate: "P10", unit: "bytes" };
  return [
    measure(perStream, {
      ...row,
      figure: "idle SSE stream",
      bound: { atMost: 24 * 1024 },
      note: "with its socket, turn, session and delivery",
    }),
    measure(perSocket, { ...row, figure: "idle WebSocket", bound: { atMost: 10 * 1024 } }),
  ];
}

/** Measures the memory of a message of 100 bytes with its turn, and of a session without its turns. */
async function measureStore({ short, say }: BenchOptions): Promise<Figure[]> {
  const turns = short ? 50_000 : 500_000;
  const sessions = short ? 20_000 : 200_000;
  const file = await buildServer("store-weight");
  const weigh = async (turns: number, sessions: number): Promise<Weight> => {
    const options = JSON.stringify({ turns, sessions });
    const nodeArgs = ["--expose-gc", "--max-old-space-size=8192", file, options];
    const [command, args] = pinned(SERVER_CORE, process.execPath, nodeArgs);
    return JSON.parse(await runProgram(command, args, { timeoutMs: 180_000 })) as Weight;
  };
  say(`P10: ${2 * turns} messages, then ${sessions} sessions in the store`);
  const long = await weigh(turns, turns / TURNS_PER_SESSION);
  const wide = await weigh(sessions, sessions);
  const counted = ({ counted, bytes }: Weight) => `the store counts ${Math.round((counted / bytes) * 100)} % of it`;
  const row = { gate: "P10", unit: "bytes" };
  return [
    measure([long.bytes / (2 * turns)], {
      ...row,
      figure: "message of 100 bytes, with its turn",
      bound: { atMost: 1_024 },
      note: counted(long),
    }),
    measure([wide.bytes / sessions - long.bytes / turns], {
      ...row,
      figure: "session, without its turns",
      bound: { atMost: 2_048 },
      note: `of sessions of one turn; ${counted(wide)}`,
    }),
  ];
}

export const MEMORY_GATES: readonly Gate[] = [
  { gate: "P10", figure: "messages and sessions", measure: measureStore },
  { gate: "P10", figure: "idle connections", measure: measureIdle },
];
