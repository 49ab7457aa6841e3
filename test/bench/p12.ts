import { type Call, chatCall, messageCall, rpcCall } from "./calls.ts";
import { type Bound, compare, type Figure, unmeasured } from "./figures.ts";
import { SQLITE, startPreloaded } from "./gateways.ts";
import { type Load, requireClean, runLoad, unlessIdle } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { PageTime } from "./servers/preloaded.ts";
import { completedTurns, requireEnded } from "./turns.ts";

const FEW = 1_000;
const WARM_UP_S = 3;
const LIST = rpcCall("session.list", { limit: 50 });

/** P12: what a hundred times the sessions cost, under P4's and P1's load over all of them, and for a page of their list. */
export const measureManySessions = (options: BenchOptions): Promise<Figure[]> =>
  measureManyOn(options, "", { many: 100_000 });

/** The cost of a thousand times the sessions, in a file. */
export const measureManyOnSqlite = (options: BenchOptions): Promise<Figure[]> =>
  measureManyOn(options, " on SQLite", { many: 1_000_000, store: SQLITE });

const measureManyOn = async (
  { rounds, seconds, short, say }: BenchOptions,
  where: string,
  { many: most, ...how }: { many: number; store?: object },
): Promise<Figure[]> => {
  const many = short ? most / 10 : most;
  const names = {
    chat: `requests/s of P4's load, ${FEW} to ${many} sessions${where}`,
    rate: `requests/s of P1's load, ${FEW} to ${many} sessions${where}`,
    list: `session.list over /rpc, a page of 50, p50${where}`,
    page: `the same page at the store${where}`,
  } as const;
  const why = whyNoLoad();
  if (why) return Object.values(names).map((name) => unmeasured("P12", name, why));
  say(`P12: ${many} sessions in the store`);
  await using small = await startPreloaded({ sessions: FEW, turns: FEW, ...how });
  await using large = await startPreloaded({ sessions: many, turns: many, ...how });

  // The first walk is for the compiler, of the store that is not judged by it.
  await small.ask("page");
  const pages: { small: number[]; large: number[] } = { small: [], large: [] };
  for (let round = 0; round < Math.max(rounds, 3); round++) {
    pages.small.push((await small.ask<PageTime>("page")).micros);
    pages.large.push((await large.ask<PageTime>("page")).micros);
  }

  const run = async (
    { url, pid }: typeof small,
    sessions: number,
    { call, seed, lasting = seconds }: { call: Call; seed: number; lasting?: number },
  ): Promise<Load> => {
    const before = await completedTurns(url);
    const load = await runLoad({ url, pid, call, sessions, seed, seconds: lasting });
    requireClean(load, "P12");
    await requireEnded(url, before + load.requests);
    return load;
  };
  const ratesOf = async (name: string, call: Call): Promise<{ small: Load[]; large: Load[] }> => {
    const loads: { small: Load[]; large: Load[] } = { small: [], large: [] };
    await run(small, FEW, { call, seed: 0, lasting: WARM_UP_S });
    await run(large, many, { call, seed: 0, lasting: WARM_UP_S });
    for (let round = 1; round <= rounds; round++) {
      say(`P12: ${name}, round ${round} of ${rounds}`);
      loads.small.push(await run(small, FEW, { call, seed: round }));
      loads.large.push(await run(large, many, { call, seed: round }));
    }
    return loads;
  };
  const list = async ({ url, pid }: typeof small): Promise<number> => {
    const load = await runLoad({ url, pid, call: LIST, sessions: 0, seed: 0, seconds, connections: 1 });
    requireClean(load, "P12");
    return load.p50;
  };
  const chats = await ratesOf(names.chat, chatCall(FEW));
  const messages = await ratesOf(names.rate, messageCall());
  const lists: { small: number[]; large: number[] } = { small: [], large: [] };
  for (let round = 0; round < rounds; round++) {
    lists.small.push(await list(small));
    lists.large.push(await list(large));
  }
  const rate = ({ rate }: Load) => rate;
  const cpu = (of: readonly Load[]) => of.map((load) => load.cpu.toFixed(0)).join(", ");
  const ratesFrom = (loads: typeof chats, figure: string, more: { bound?: Bound; note: string }): Figure => {
    const note = `${more.note}CPU a request by round: ${cpu(loads.small)} us, then ${cpu(loads.large)} us`;
    const compared = compare(loads.large.map(rate), loads.small.map(rate), {
      ...{ gate: "P12", figure, unit: "requests/s", note },
      ...(more.bound && { bound: more.bound }),
    });
    return unlessIdle(compared, loads.small);
  };
  const filled = `filled in ${Math.round(large.fillMs)} ms; `;
  return [
    ratesFrom(chats, names.chat, { bound: { atLeast: 0.85, what: `x ${FEW}` }, note: filled }),
    ratesFrom(messages, names.rate, { note: "no gate; " }),
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
