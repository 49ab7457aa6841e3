import { buildClient } from "./builds.ts";
import type { Call } from "./calls.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import type { KeptReport, KeptRun, KeptWish } from "./clients/kept-connections.ts";
import { requireOwnMachine } from "./load.ts";
import { CLIENT_CORE, pinned } from "./machine.ts";

const CONNECTIONS = 50;

/** A client whose connections stand, to run several loads with against a server on this machine. Latencies are in microseconds. */
export const openKept = async (url: string, { call, sessions }: { call: Call; sessions: number }) => {
  requireOwnMachine(url);
  const wish: KeptWish = { url, ...call, sessions, connections: CONNECTIONS };
  const args = [await buildClient("kept-connections"), JSON.stringify(wish)];
  const child = startChild(...pinned(CLIENT_CORE, process.execPath, args), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await nextMessage(child);
  return {
    run: async (seconds: number): Promise<KeptReport & { broken: number }> => {
      const report = nextMessage<KeptReport>(child);
      child.send({ seconds } satisfies KeptRun);
      return { ...(await report), broken: 0 };
    },
    [Symbol.asyncDispose]: () => stopChild(child),
  };
};
