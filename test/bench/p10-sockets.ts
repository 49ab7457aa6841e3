import { startBare } from "./bare.ts";
import { openSocket } from "./clients/open-socket.ts";
import type { Figure } from "./figures.ts";
import { RPC_TOKEN, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { idleFigures, reporting, weighIdle } from "./idle.ts";
import type { BenchOptions } from "./options.ts";
import type { Memory } from "./servers/report-memory.ts";

const AT_MOST = 10 * 1024;

/** P10: what a WebSocket weighs that is open and silent. */
export const measureIdleSockets = async ({ rounds, short, say }: BenchOptions): Promise<Figure[]> => {
  const sockets = short ? 1_000 : 5_000;
  const own: Memory[] = [];
  const bare: Memory[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P10: ${sockets} idle WebSockets, round ${round + 1} of ${rounds}`);
    bare.push(await weighBare(sockets));
    own.push(await weighGateway(sockets));
  }
  return idleFigures(own, bare, {
    what: "idle WebSocket",
    of: sockets,
    beside: "one of a bare `ws` server",
    holds: "with its TCP socket as far as Node holds it",
    atMost: AT_MOST,
  });
};

const weighGateway = async (sockets: number): Promise<Memory> => {
  await using server = await startGateway({ channel: true, nodeArgs: await reporting() });
  await untilAnswers(`${server.url}/readyz`);
  return await weighSockets(server, sockets);
};

const weighBare = async (sockets: number): Promise<Memory> => {
  await using server = await startBare("bare-ws", await reporting());
  return await weighSockets(server, sockets);
};

const weighSockets = async (server: Started, sockets: number): Promise<Memory> => {
  let gone = 0;
  const weighed = await weighIdle(server, sockets, async () => {
    const socket = await openSocket(server.url, RPC_TOKEN, () => {});
    // The server is ended under these sockets when its round is over.
    socket.on("error", () => {}).on("close", () => gone++);
  });
  if (gone > 0) throw new Error(`${gone} of the sockets that were to be weighed were closed`);
  return weighed;
};
