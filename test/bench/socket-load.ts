import { buildClient } from "./builds.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import type { SocketReport, SocketRun, SocketWish } from "./clients/socket-load.ts";
import { RPC_TOKEN, type Started } from "./gateways.ts";
import { type Cost, type Report, requireOwnMachine, withCost } from "./load.ts";
import { CLIENT_CORE, pinned } from "./machine.ts";

export type SocketLoad = Pick<Report, "rate" | "requests" | "refused" | "broken"> &
  Cost & { p50: number; clientBusy: number };

const SETTLE_S = 1;

/** Runs calls over WebSockets for `seconds` against a server on this machine, when it has warmed up the same way. */
export const runSockets = async (
  { url, pid }: Pick<Started, "url" | "pid">,
  wish: Omit<SocketWish, "url" | "token">,
  seconds: number,
): Promise<SocketLoad> => {
  requireOwnMachine(url);
  const args = [await buildClient("socket-load"), JSON.stringify({ ...wish, url, token: RPC_TOKEN })];
  const child = startChild(...pinned(CLIENT_CORE, process.execPath, args), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const run = (seconds: number): Promise<SocketReport> => {
    const report = nextMessage<SocketReport>(child);
    child.send({ seconds } satisfies SocketRun);
    return report;
  };
  try {
    await nextMessage(child);
    await run(SETTLE_S);
    const { micros, errors, lost, ...found } = await withCost(pid, () => run(seconds));
    return { ...found, rate: (found.requests / micros) * 1e6, refused: errors, broken: lost };
  } finally {
    await stopChild(child);
  }
};
