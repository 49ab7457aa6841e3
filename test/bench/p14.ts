import { figureOf } from "./against-bare.ts";
import { type Call, messageCall, rpcCall } from "./calls.ts";
import { type Figure, unmeasured } from "./figures.ts";
import { type GatewayWish, readMetrics, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { type Load, requireClean, runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { completedTurns, requireEnded } from "./turns.ts";

const WARM_UP_S = 1;
const SESSIONS = 1_000;
const DAY_MS = 86_400_000;
// What is announced as larger is refused by that, whatever the limit is: a low one keeps the transfer of the body out of the figure.
const BODY_LIMIT = 4 * 1024;

// Who fails to authenticate 20 times a minute is told to wait: so all come through a proxy that is believed, from many addresses.
const BEHIND_PROXY: GatewayWish = { gateway: { trustedProxies: ["127.0.0.1"] }, limits: { rpcBody: BODY_LIMIT } };
const LIMITED: GatewayWish = { ...BEHIND_PROXY, rpc: { rateLimit: { maxRequests: 1, windowMs: DAY_MS } } };
const FROM_MANY = { "x-forwarded-for": "{address}", "x-forwarded-proto": "https" };
const ON_ITS_OWN = { connection: "close" };

const withHeaders = (call: Call, headers: Record<string, string>): Call => ({
  ...call,
  headers: { ...call.headers, ...FROM_MANY, ...headers },
});

/** A call that is refused, and in which way it is told so; `error` is its name in the metrics. */
type Refusal = {
  figure: string;
  call: Call;
  error: string;
  note: string;
  isLimited?: boolean;
  endsConnection?: boolean;
};

const ACCEPTED = messageCall();
const REFUSALS: readonly Refusal[] = [
  {
    figure: "401, /rpc with a wrong token",
    call: withHeaders(ACCEPTED, { authorization: "Bearer wrong-token-{guess}" }),
    error: "unauthenticated",
    note: "each a token of its own, and 20 from each address, as a trusted proxy reports it: below the guessing threshold",
  },
  {
    figure: "404, a path below /rpc",
    call: withHeaders({ ...ACCEPTED, path: "/rpc/nothing" }, {}),
    error: "not-found",
    note: "with the same body",
  },
  {
    figure: "-32601, a method that there is not",
    call: withHeaders(rpcCall("agent.sendMassage", JSON.parse(ACCEPTED.body).params), {}),
    error: "method-not-found",
    note: "HTTP 200",
  },
  {
    figure: "413, a body that is too large",
    call: withHeaders({ ...ACCEPTED, body: ACCEPTED.body.padEnd(2 * BODY_LIMIT) }, ON_ITS_OWN),
    error: "too-large",
    note: "8 KiB with a limit of 4; ends its connection, so beside accepted ones with a connection each",
    endsConnection: true,
  },
  {
    figure: "-32004, past gateway.rpc.rateLimit",
    call: withHeaders(ACCEPTED, {}),
    error: "rate-limited",
    note: "429's code, in HTTP 200",
    isLimited: true,
  },
];

/** P14: what is refused, beside P1's messages that are accepted; all with the same headers and from the same changing addresses. */
export const measureRefusals = async ({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return REFUSALS.map(({ figure }) => unmeasured("P14", figure, why));
  const accepted: { kept: Load[]; own: Load[] } = { kept: [], own: [] };
  const refused = REFUSALS.map((): Load[] => []);
  for (let round = 1; round <= rounds; round++) {
    say(`P14: round ${round} of ${rounds}`);
    accepted.kept.push(await measureAccepted(withHeaders(ACCEPTED, {}), seconds));
    accepted.own.push(await measureAccepted(withHeaders(ACCEPTED, ON_ITS_OWN), seconds));
    await using gateway = await startReady(BEHIND_PROXY);
    await using limited = await startReady(LIMITED);
    for (const [n, refusal] of REFUSALS.entries())
      refused[n]?.push(await measureRefusal(refusal.isLimited ? limited : gateway, refusal, { seconds, seed: 2 * n }));
  }
  return REFUSALS.map(({ figure, note, endsConnection }, n) => {
    const compared = endsConnection ? accepted.own : accepted.kept;
    const row = { gate: "P14", figure, bound: { atLeast: 1, what: "x accepted" }, note, beside: "accepted" };
    return figureOf(refused[n] as Load[], compared, row);
  });
};

const startReady = async (wish: GatewayWish): Promise<Started> => {
  const gateway = await startGateway(wish);
  await untilAnswers(`${gateway.url}/readyz`);
  return gateway;
};

/** A gateway of its own, as what it holds grows. */
const measureAccepted = async (call: Call, seconds: number): Promise<Load> => {
  await using gateway = await startReady(BEHIND_PROXY);
  const load = { url: gateway.url, pid: gateway.pid, call, sessions: SESSIONS };
  await runLoad({ ...load, seconds: WARM_UP_S, seed: 1 });
  const before = await completedTurns(gateway.url);
  const run = await runLoad({ ...load, seconds, seed: 2 });
  requireClean(run, "P14");
  await requireEnded(gateway.url, before + run.requests);
  return run;
};

/** Throws unless each request of the run was refused for the reason that is measured. */
const measureRefusal = async (
  { url, pid }: Started,
  { call, error, figure }: Refusal,
  { seconds, seed }: { seconds: number; seed: number },
): Promise<Load> => {
  const count = async () => (await readMetrics(url))(`gateway_errors_total{surface="rpc",error="${error}"}`);
  const load = { url, pid, call, sessions: SESSIONS };
  await runLoad({ ...load, seconds: WARM_UP_S, seed });
  const before = await count();
  const run = await runLoad({ ...load, seconds, seed: seed + 1 });
  const refusals = (await count()) - before;
  if (run.broken > 0) throw new Error(`${figure}: ${run.broken} of ${run.requests} broke`);
  if (refusals < run.requests)
    throw new Error(`${figure}: of ${run.requests} only ${refusals} were refused as ${error}`);
  return run;
};
