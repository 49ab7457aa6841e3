import { cleanSentence } from "#kit/clean-words.ts";
import type { Tool, ToolSource } from "../tool.ts";
import type { ToolServer } from "./server.ts";

/** The tools of one agent: of each server that it names, those that it names. `*` is all of a server. */
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

const orAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) return leave();
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
