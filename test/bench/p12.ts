import { messageCall, rpcCall } from "./calls.ts";
import { compare, type Figure, unmeasured } from "./figures.ts";
import { startPreloaded } from "./gateways.ts";
import { type Load, requireClean, runLoad, unlessIdle } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { PageTime } from "./servers/preloaded.ts";
import { completedTurns, requireEnded } from "./turns.ts";

const FEW = 1_000;
const WARM_UP_S = 3;
const LIST = rpcCall("session.list", { limit: 50 });

/** P12: what a thousand times the sessions cost, under P1's load over all of them, and for a page of their list. */
export const measureManySessions = async ({ rounds, seconds, short, say }: BenchOptions): Promise<Figure[]> => {
  const many = short ? 100_000 : 1_000_000;
  const names = {
    rate: `requests/s, ${FEW} to ${many} sessions`,
    list: "session.list over /rpc, a page of 50, p50",
    page: "the same page at the store",
  } as const;
  const why = whyNoLoad();
  if (why) return Object.values(names).map((name) => unmeasured("P12", name, why));
  say(`P12: ${many} sessions in the store`);
  await using small = await startPreloaded({ sessions: FEW, turns: FEW });
  await using large = await startPreloaded({ sessions: many, turns: many });

  // The first walk is for the compiler, of the store that is not judged by it.
  await small.ask("page");
  const pages: { small: number[]; large: number[] } = { small: [], large: [] };
  for (let round = 0; round < Math.max(rounds, 3); round++) {
    pages.small.push((await small.ask<PageTime>("page")).micros);
    pages.large.push((await large.ask<PageTime>("page")).micros);
  }

  const run = async (server: typeof small, sessions: number, round: number, lasting = seconds): Promise<Load> => {
    const { url, pid } = server;
    const before = await completedTurns(url);
    const load = await runLoad({ url, pid, call: messageCall(), sessions, seed: round + 1, seconds: lasting });
    requireClean(load, "P12");
    await requireEnded(url, before + load.requests);
    return load;
  };
  const list = async ({ url, pid }: typeof small): Promise<number> => {
    const load = await runLoad({ url, pid, call: LIST, sessions: 0, seed: 0, seconds, connections: 1 });
    requireClean(load, "P12");
    return load.p50;
  };
  await run(small, FEW, -1, WARM_UP_S);
  await run(large, many, -1, WARM_UP_S);
  const loads: { small: Load[]; large: Load[] } = { small: [], large: [] };
  const lists: { small: number[]; large: number[] } = { small: [], large: [] };
  for (let round = 0; round < rounds; round++) {
    say(`P12: round ${round + 1} of ${rounds}`);
    loads.small.push(await run(small, FEW, round));
    loads.large.push(await run(large, many, round));
    lists.small.push(await list(small));
    lists.large.push(await list(large));
  }
  const rate = ({ rate }: Load) => rate;
  const cpu = (of: readonly Load[]) => of.map((load) => load.cpu.toFixed(0)).join(", ");
  const rates = compare(loads.large.map(rate), loads.small.map(rate), {
    gate: "P12",
    figure: names.rate,
    unit: "requests/s",
    bound: { atLeast: 0.9, what: `x ${FEW}` },
    note: `CPU a request by round: ${cpu(loads.small)} us, then ${cpu(loads.large)} us; filled in ${Math.round(large.fillMs)} ms`,
  });
  return [
    unlessIdle(rates, loads.small),
    compare(lists.large, lists.small, {
      gate: "P12",
      figure: names.list,
      unit: "us",
      bound: { atMost: 3, what: `x ${FEW}` },
    }),
    compare(pages.large, pages.small, {
      gate: "P12",
      figure: names.page,
      unit: "us",
      bound: { atMost: 3, what: `x ${FEW}` },
    }),
  ];
};
