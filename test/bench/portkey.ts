import { existsSync } from "node:fs";
import { join } from "node:path";
import { startChild, stopChild } from "./children.ts";
import { freePort, type Started, untilAnswers } from "./gateways.ts";
import { pinned, SERVER_CORE } from "./machine.ts";

const PACKAGE = "node_modules/@portkey-ai/gateway/build/start-server.js";

/** Portkey's gateway, with what tells it where to go; or why it is not there. */
export type Portkey = AsyncDisposable & ((Started & { headers: Readonly<Record<string, string>> }) | { why: string });

/** Portkey's gateway from a folder where it is installed. It is no dependency: nothing here needs it but a comparison. */
export const whenPortkey = async (folder = ".", model: string): Promise<Portkey> => {
  const file = join(folder, PACKAGE);
  if (!existsSync(file)) return { why: `is not installed (--portkey DIR)`, [Symbol.asyncDispose]: async () => {} };
  const port = await freePort();
  const [command, args] = pinned(SERVER_CORE, process.execPath, [file, `--port=${port}`, "--headless"]);
  const env = { ...process.env, NODE_ENV: "production", TRUSTED_CUSTOM_HOSTS: "127.0.0.1" };
  const child = startChild(command, args, { env });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(url);
  return {
    url,
    pid: child.pid as number,
    child,
    headers: {
      authorization: "Bearer none",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${model}/v1`,
    },
    [Symbol.asyncDispose]: () => stopChild(child),
  };
};
