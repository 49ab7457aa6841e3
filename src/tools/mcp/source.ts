import { orAborted } from "#kit/abort.ts";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import type { ToolSource } from "../tool.ts";
import type { ServerSettings } from "./connection.ts";
import { ToolServer } from "./server.ts";

type ToolSettings = {
  servers: readonly ServerSettings[];
  /** The wanted tools, as `server/tool` or `server/*`. */
  wanted: readonly string[];
};

/** Receives, with the server's name, the lines of its program and the reason why it could not be started. */
type ToolParts = {
  clock: Clock;
  say: (server: string, said: StderrLine) => void;
  failed: (server: string, reason: string) => void;
};

/** The tool servers of one agent, and the tools that it may call there. */
export function openToolServers({ servers, wanted }: ToolSettings, { clock, say, failed }: ToolParts): ToolSource {
  const opened = servers.map((settings) => {
    const { name } = settings;
    const own = { clock, say: (said: StderrLine) => say(name, said), failed: (why: string) => failed(name, why) };
    return new ToolServer(settings, own);
  });
  const namedOf = (server: string) =>
    wanted.flatMap((one) => (one.startsWith(`${server}/`) ? one.slice(server.length + 1) : []));
  return {
    async tools(signal, hops) {
      const asked = opened.map((server) => orAborted(server.tools(namedOf(server.name), hops), signal));
      const offered = await Promise.all(asked);
      const missing = offered.flatMap(({ missing }, n) =>
        missing.map((reason) => ({ server: opened[n]?.name ?? "", reason: cleanSentence(reason) })),
      );
      return { tools: offered.flatMap(({ tools }) => tools), missing };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((server) => server.close()));
    },
  };
}
