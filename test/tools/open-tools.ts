import { type Clock, systemClock } from "#kit/clock.ts";
import type { ServerSettings } from "#tools/mcp/connection.ts";
import { openToolServers } from "#tools/mcp/source.ts";
import type { Tool } from "#tools/tool.ts";

/** The signal of a turn that is not stopped. */
export const { signal } = new AbortController();

/** A clock whose waits of a second or more are counted, and never over. */
export function heldClock() {
  const waits: number[] = [];
  const after = (ms: number, fire: () => void) => {
    if (ms < 1_000) return systemClock.after(ms, fire);
    waits.push(ms);
    return () => {};
  };
  return { waits, clock: { ...systemClock, after } };
}

type More = { wanted?: string[]; callMs?: number; output?: number; clock?: Clock };

/** An agent's tools of one server. */
export function open(reach: ServerSettings["reach"], more: More = {}) {
  const { wanted = ["files/*"], callMs = 5_000, output = 1_000, clock = systemClock } = more;
  const said: string[] = [];
  const failures: string[] = [];
  const server = { name: "files", version: "1.0.0", reach, callMs, outputCharacters: output };
  const source = openToolServers(
    { servers: [server], wanted },
    { clock, say: (_, { line }) => void said.push(line), failed: (_, reason) => void failures.push(reason) },
  );
  const tools = async (hops = 0) => (await source.tools(signal, hops)).tools;
  return {
    source,
    said,
    failures,
    names: async () => (await tools()).map(({ name }) => name),
    areOutside: async () => (await tools()).every(({ isOutside }) => isOutside),
    async call(name: string, args: unknown = {}, by = signal, hops = 0) {
      const tool = (await tools(hops)).find((one) => one.name === `files__${name}`) as Tool;
      return await tool.call(args, by);
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}
