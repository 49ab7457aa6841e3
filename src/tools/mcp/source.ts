import { orAborted } from "#kit/abort.ts";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import type { Tool, ToolSource } from "../tool.ts";
import { createToolServer, type ServerSettings, type ToolServer } from "./server.ts";

/** The tools of one agent: the ones that it names, of each server that it names. `*` stands for all of a server. */
export const createToolSource = (servers: readonly ToolServer[], wanted: readonly string[]): ToolSource => {
  const namedOf = (server: string) =>
    wanted.flatMap((one) => (one.startsWith(`${server}/`) ? one.slice(server.length + 1) : []));
  const ask = (server: ToolServer, hops: number) => {
    const named = namedOf(server.name);
    const all = named.includes("*");
    const exact = named.filter((tool) => tool !== "*");
    return server.tools((tool) => all || exact.includes(tool), exact, hops);
  };
  return {
    async tools(signal, hops) {
      const tools: Tool[] = [];
      const missing: { server: string; reason: string }[] = [];
      const asked = servers.map((server) => orAborted(ask(server, hops), signal));
      for (const [n, outcome] of (await Promise.allSettled(asked)).entries()) {
        const server = servers[n]?.name ?? "";
        if (outcome.status === "rejected") {
          missing.push({ server, reason: cleanSentence(String(outcome.reason?.message)) });
          continue;
        }
        tools.push(...outcome.value.tools);
        const { large, lacking } = outcome.value;
        if (lacking.length > 0)
          missing.push({ server, reason: cleanSentence(`none of its tools: ${lacking.join(", ")}`) });
        if (large.length > 0)
          missing.push({ server, reason: cleanSentence(`too large for a model: ${large.join(", ")}`) });
      }
      signal.throwIfAborted();
      return { tools, missing };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
};

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
export const openToolServers = ({ servers, wanted }: ToolSettings, { clock, say, failed }: ToolParts): ToolSource =>
  createToolSource(
    servers.map((server) => {
      const { name } = server;
      const own = { clock, say: (said: StderrLine) => say(name, said), failed: (why: string) => failed(name, why) };
      return createToolServer(server, own);
    }),
    wanted,
  );
