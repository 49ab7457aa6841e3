import { buildServer } from "./builds.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import type { Started } from "./gateways.ts";
import { pinned, SERVER_CORE } from "./machine.ts";

/** The servers that the gateway is compared with, each a file in servers/. */
export type BareName = "bare-http";

export const startBare = async (name: BareName): Promise<Started> => {
  const [command, args] = pinned(SERVER_CORE, process.execPath, [await buildServer(name)]);
  const child = startChild(command, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const { port } = await nextMessage<{ port: number }>(child);
  const dispose = () => stopChild(child);
  return { url: `http://127.0.0.1:${port}`, pid: child.pid as number, child, [Symbol.asyncDispose]: dispose };
};
