import { buildServer } from "./builds.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import { type Started, TLS } from "./gateways.ts";
import { pinned, SERVER_CORE } from "./machine.ts";

/** The servers that the gateway is compared with, each a file in servers/. */
export type BareName = "bare-http" | "bare-https" | "bare-http2" | "bare-http2-any" | "bare-ws" | "bare-proxy";

export const startBare = async (
  name: BareName,
  nodeArgs: readonly string[] = [],
  own: readonly string[] = [],
): Promise<Started> => {
  const isTls = name === "bare-https";
  const files = isTls ? [TLS.cert, TLS.key] : own;
  const [command, args] = pinned(SERVER_CORE, process.execPath, [...nodeArgs, await buildServer(name), ...files]);
  const child = startChild(command, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const { port } = await nextMessage<{ port: number }>(child);
  const dispose = () => stopChild(child);
  const url = `${isTls ? "https" : "http"}://127.0.0.1:${port}`;
  return { url, pid: child.pid as number, child, [Symbol.asyncDispose]: dispose };
};
