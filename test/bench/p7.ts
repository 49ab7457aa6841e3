import { startBare } from "./bare.ts";
import type { Call } from "./calls.ts";
import { type Figure, measure, median, unmeasured } from "./figures.ts";
import { type Started, startGateway, untilAnswers } from "./gateways.ts";
import { type Report, requireClean, runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { whenPortkey } from "./portkey.ts";
import { completionCall, doorCall, modelAt, PIECES, WARM_UP_S } from "./proxied.ts";
import { startStandIn } from "./token-load.ts";

/** What the gateway may add for each millisecond that Portkey adds. */
const MOST_OF_PORTKEY = { p50: 0.7, p99: 1 };
const NAMES = {
  p50: "added to a model that answers at once, one connection: p50",
  p99: "the same: p99",
} as const;

type Times = Pick<Report, "p50" | "p99">;

/** P7: a turn by the door for OpenAI's clients whose model answers at once, less the same asked of the model itself; and what others add in the same rounds. */
export const measureAdded = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return Object.values(NAMES).map((name) => unmeasured("P7", name, why));
  const { rounds, seconds, say } = options;
  const times = { direct: [] as Times[], gateway: [] as Times[], proxy: [] as Times[], portkey: [] as Times[] };
  await using model = await startStandIn({ pieces: PIECES });
  await using proxy = await startBare("bare-proxy", [], [model.url]);
  await using portkey = await whenPortkey(options.portkey, model.url);
  const run = async (to: keyof typeof times, { url, pid }: Started, call: Call): Promise<void> => {
    const load = (lasting: number) =>
      runLoad({ url, pid, call, sessions: 0, seed: 1, connections: 1, seconds: lasting });
    requireClean(await load(WARM_UP_S), `P7, ${to}`);
    const counted = await load(seconds);
    requireClean(counted, `P7, ${to}`);
    times[to].push(counted);
  };
  for (let round = 1; round <= rounds; round++) {
    say(`P7: round ${round} of ${rounds}`);
    await using gateway = await startGateway(modelAt(model.url));
    await untilAnswers(`${gateway.url}/readyz`);
    await run("direct", model, completionCall(true));
    await run("gateway", gateway, doorCall);
    await run("proxy", proxy, completionCall(true));
    if ("url" in portkey) await run("portkey", portkey, completionCall(false, portkey.headers));
  }
  const added = (of: keyof typeof times, share: keyof Times): number[] =>
    times[of].map((time, round) => (time[share] - (times.direct[round] as Times)[share]) / 1_000);
  const others = (share: keyof Times): string => {
    const direct = (median(times.direct.map((time) => time[share])) / 1_000).toFixed(2);
    const bare = median(added("proxy", share)).toFixed(2);
    const theirs = "url" in portkey ? `${median(added("portkey", share)).toFixed(2)} ms` : portkey.why;
    return `the model itself ${direct} ms; a bare undici proxy adds ${bare} ms, Portkey ${theirs}`;
  };
  return (["p50", "p99"] as const).map((share) =>
    measure(added("gateway", share), {
      gate: "P7",
      figure: NAMES[share],
      unit: "ms",
      ...("url" in portkey && { bound: { atMost: median(added("portkey", share)) * MOST_OF_PORTKEY[share] } }),
      note: others(share),
    }),
  );
};
