import { buildServer } from "./builds.ts";
import { nextMessage } from "./children.ts";
import { compare, type Figure, measure, median } from "./figures.ts";
import type { Started } from "./gateways.ts";
import { rssOf } from "./machine.ts";
import type { Memory } from "./servers/report-memory.ts";

// The first ones also pay for what is made once: code, pools, tables, and a young generation that grows with them.
const FIRST = 1_000;
const AT_ONCE = 50;

/** What a server is started with, so that its memory can be weighed. */
export const reporting = async (): Promise<string[]> => [
  "--expose-gc",
  "--import",
  `./${await buildServer("report-memory")}`,
];

/** What each of `count` connections weighs that are open and silent. `open` opens one, and resolves when the server has all of it. */
export const weighIdle = async (server: Started, count: number, open: () => Promise<unknown>): Promise<Memory> => {
  await openAll(FIRST, open);
  const before = await weigh(server);
  await openAll(count, open);
  const after = await weigh(server);
  return { rss: (after.rss - before.rss) / count, heap: (after.heap - before.heap) / count };
};

const openAll = async (count: number, open: () => Promise<unknown>): Promise<void> => {
  for (let opened = 0; opened < count; opened += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - opened) }, open));
};

const weigh = async ({ child, pid }: Started): Promise<Memory> => {
  const told = nextMessage<Memory>(child);
  child.send("weigh");
  return { ...(await told), rss: rssOf(pid) };
};

type Names = { what: string; of: number; beside: string; holds: string; atMost: number };

/**
 * The gate is held to what the process keeps for a connection: the JavaScript heap and what that holds outside. RSS stands beside it,
 * with that of a bare server, as most of it is what Node and the allocator take for any connection.
 */
export const idleFigures = (own: readonly Memory[], bare: readonly Memory[], names: Names): Figure[] => {
  const of = (name: keyof Memory, weights: readonly Memory[]) => weights.map((weight) => weight[name]);
  const { what, beside, holds, atMost } = names;
  const bareHeap = Math.round(median(of("heap", bare)));
  const bareRss = Math.round(median(of("rss", bare)));
  const row = { gate: "P10", unit: "bytes" };
  return [
    measure(of("heap", own), {
      ...row,
      figure: `${what}, heap and external, of ${names.of}`,
      bound: { atMost },
      note: `${holds}; ${beside}: ${bareHeap}; RSS is the next row`,
    }),
    compare(of("rss", own), of("rss", bare), {
      ...row,
      figure: `${what}, RSS, x bare`,
      note: `no gate: ${beside} has ${bareRss}, and pages that were once needed are counted too`,
    }),
  ];
};
