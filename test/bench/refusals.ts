import { figureOf } from "./against-bare.ts";
import type { Call } from "./calls.ts";
import type { Figure } from "./figures.ts";
import { type GatewayWish, readMetrics, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { type Load, requireClean, runLoad } from "./load.ts";
import type { BenchOptions } from "./options.ts";
import type { Work } from "./turns.ts";

const WARM_UP_S = 1;
const SESSIONS = 1_000;
const ON_ITS_OWN = { connection: "close" };
export const DAY_MS = 86_400_000;

// Who fails to authenticate 20 times a minute is told to wait: so all come through a proxy that is believed, from many addresses.
export const BEHIND_PROXY = { gateway: { trustedProxies: ["127.0.0.1"] } } satisfies GatewayWish;
const FROM_MANY = { "x-forwarded-for": "{address}", "x-forwarded-proto": "https" };

/** A token that nobody has, another each time. */
export const WRONG_TOKEN = { authorization: "Bearer wrong-token-{guess}" };

const withHeaders = (call: Call, headers: Readonly<Record<string, string>>): Call => ({
  ...call,
  headers: { ...call.headers, ...headers },
});

/** A call that is refused, and in which way it is told so; `error` is its name in the metrics. */
export type Refusal = {
  figure: string;
  call: Call;
  error: string;
  note: string;
  /** The gateway that refuses it, where that is not the one that accepts. */
  gateway?: GatewayWish;
  endsConnection?: boolean;
};

export type Refusals = {
  surface: "rpc" | "hooks";
  /** The call that is accepted, what it starts, and where. */
  accepted: Call;
  work: Work;
  gateway: GatewayWish;
  refusals: readonly Refusal[];
};

/** What is refused, beside what is accepted; all with the same headers and from the same changing addresses. */
export const compareRefusals = async (wish: Refusals, options: BenchOptions): Promise<Figure[]> => {
  const { surface, refusals, gateway } = wish;
  const { rounds, seconds, say } = options;
  const accepted: { kept: Load[]; own: Load[] } = { kept: [], own: [] };
  const refused = refusals.map((): Load[] => []);
  for (let round = 1; round <= rounds; round++) {
    say(`P14: ${surface}, round ${round} of ${rounds}`);
    accepted.kept.push(await measureAccepted(wish, FROM_MANY, seconds));
    accepted.own.push(await measureAccepted(wish, { ...FROM_MANY, ...ON_ITS_OWN }, seconds));
    await using usual = await startReady(gateway);
    for (const [n, refusal] of refusals.entries()) {
      await using own = refusal.gateway && (await startReady(refusal.gateway));
      refused[n]?.push(await measureRefusal(own ?? usual, refusal, { surface, seconds, seed: 2 * n }));
    }
  }
  return refusals.map(({ figure, note, endsConnection }, n) => {
    const compared = endsConnection ? accepted.own : accepted.kept;
    const row = { gate: "P14", figure, bound: { atLeast: 0.9, what: "x accepted" }, note, beside: "accepted" };
    return figureOf(refused[n] as Load[], compared, row);
  });
};

const startReady = async (wish: GatewayWish): Promise<Started> => {
  const gateway = await startGateway(wish);
  await untilAnswers(`${gateway.url}/readyz`);
  return gateway;
};

/** On a gateway of its own, as what it holds grows. */
const measureAccepted = async (
  { accepted, work, gateway: how }: Refusals,
  headers: Readonly<Record<string, string>>,
  seconds: number,
): Promise<Load> => {
  await using gateway = await startReady(how);
  const load = { url: gateway.url, pid: gateway.pid, call: withHeaders(accepted, headers), sessions: SESSIONS };
  await runLoad({ ...load, seconds: WARM_UP_S, seed: 1 });
  const before = await work.count(gateway.url);
  const run = await runLoad({ ...load, seconds, seed: 2 });
  requireClean(run, "P14");
  await work.requireEnded(gateway.url, before + run.requests);
  return run;
};

/** Throws unless each request of the run was refused for the reason that is measured. */
const measureRefusal = async (
  { url, pid }: Started,
  { call, error, figure, endsConnection }: Refusal,
  { surface, seconds, seed }: { surface: string; seconds: number; seed: number },
): Promise<Load> => {
  const count = async () => (await readMetrics(url))(`gateway_errors_total{surface="${surface}",error="${error}"}`);
  const headers = { ...FROM_MANY, ...(endsConnection && ON_ITS_OWN) };
  const load = { url, pid, call: withHeaders(call, headers), sessions: SESSIONS };
  await runLoad({ ...load, seconds: WARM_UP_S, seed });
  const before = await count();
  const run = await runLoad({ ...load, seconds, seed: seed + 1 });
  const refusals = (await count()) - before;
  if (run.broken > 0) throw new Error(`${figure}: ${run.broken} of ${run.requests} broke`);
  if (refusals < run.requests)
    throw new Error(`${figure}: of ${run.requests} only ${refusals} were refused as ${error}`);
  return run;
};
