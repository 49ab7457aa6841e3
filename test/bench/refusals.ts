import { figureOf } from "./against-bare.ts";
import { type Call, messageCall, wakeCall } from "./calls.ts";
import type { Figure, Gate } from "./figures.ts";
import { type GatewayOptions, readMetrics, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { BEATING } from "./http.ts";
import { type Load, requireClean, runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { STRANGER_GATE } from "./stranger.ts";
import { EVENTS, TURNS, type Work } from "./work.ts";

const WARM_UP_S = 1;
const SESSIONS = 1_000;
const ON_ITS_OWN = { connection: "close" };
const DAY_MS = 86_400_000;

// An address with 20 failed authentications a minute must wait, so all requests come through a trusted proxy, from many addresses.
const BEHIND_PROXY = { gateway: { trustedProxies: ["127.0.0.1"] } } satisfies GatewayOptions;
const FROM_MANY = { "x-forwarded-for": "{address}", "x-forwarded-proto": "https" };

/** An unknown token, another one each time. */
const WRONG_TOKEN = { authorization: "Bearer wrong-token-{guess}" };

function withHeaders(call: Call, headers: Readonly<Record<string, string>>): Call {
  return {
    ...call,
    headers: { ...call.headers, ...headers },
  };
}

/** A refused call and its error; `error` is the name in the metrics. */
type Refusal = {
  figure: string;
  call: Call;
  error: string;
  note: string;
  /** The gateway that refuses the call, if it is not the one that accepts it. */
  gateway?: GatewayOptions;
  endsConnection?: boolean;
};

type Refusals = {
  surface: "rpc" | "hooks";
  /** The accepted call, the work that it starts, and its path. */
  accepted: Call;
  work: Work;
  gateway: GatewayOptions;
  refusals: readonly Refusal[];
};

/** Refused requests compared with accepted ones, with the same headers and from the same changing addresses. */
async function compareRefusals(comparison: Refusals, options: BenchOptions): Promise<Figure[]> {
  const { surface, refusals, gateway } = comparison;
  const { rounds, seconds, say } = options;
  const accepted: { kept: Load[]; own: Load[] } = { kept: [], own: [] };
  const refused = refusals.map((): Load[] => []);
  for (let round = 1; round <= rounds; round++) {
    say(`P14: ${surface}, round ${round} of ${rounds}`);
    accepted.kept.push(await measureAccepted(comparison, FROM_MANY, seconds));
    accepted.own.push(await measureAccepted(comparison, { ...FROM_MANY, ...ON_ITS_OWN }, seconds));
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
}

async function startReady(options: GatewayOptions): Promise<Started> {
  const gateway = await startGateway(options);
  await untilAnswers(`${gateway.url}/readyz`);
  return gateway;
}

/** On a new gateway, because its store grows. */
async function measureAccepted(
  { accepted, work, gateway: how }: Refusals,
  headers: Readonly<Record<string, string>>,
  seconds: number,
): Promise<Load> {
  await using gateway = await startReady(how);
  const load = { url: gateway.url, pid: gateway.pid, call: withHeaders(accepted, headers), sessions: SESSIONS };
  await runLoad({ ...load, seconds: WARM_UP_S, seed: 1 });
  const before = await work.count(gateway.url);
  const run = await runLoad({ ...load, seconds, seed: 2 });
  requireClean(run, "P14");
  await work.requireEnded(gateway.url, before + run.requests);
  return run;
}

/** Throws unless each request of the run was refused for the measured reason. */
async function measureRefusal(
  { url, pid }: Started,
  { call, error, figure, endsConnection }: Refusal,
  { surface, seconds, seed }: { surface: string; seconds: number; seed: number },
): Promise<Load> {
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
}

// A body that is declared as larger is refused by its length. A low limit excludes the transfer of the body from the figure.
const BODY_LIMIT = 4 * 1024;
const ONCE_A_DAY = { rateLimit: { maxRequests: 1, windowMs: DAY_MS } };

/** The refusals by the gateway that accepts the call. */
function usualRefusals(call: Call): Refusal[] {
  return [
    {
      figure: `401, ${call.path} with a wrong token`,
      call: { ...call, headers: { ...call.headers, ...WRONG_TOKEN } },
      error: "unauthenticated",
      note: "each with another token, and 20 from each address that a trusted proxy reports: below the guessing threshold",
    },
    {
      figure: `404, a path below ${call.path}`,
      call: { ...call, path: `${call.path}/nothing` },
      error: "not-found",
      note: "with the same body",
    },
    {
      figure: `413, ${call.path} with a body that is too large`,
      call: { ...call, body: call.body.padEnd(2 * BODY_LIMIT) },
      error: "too-large",
      note: "8 KiB with a limit of 4; ends its connection, so compared with accepted ones with a connection each",
      endsConnection: true,
    },
  ];
}

const RPC_GATEWAY = { ...BEHIND_PROXY, limits: { rpcBody: BODY_LIMIT } };
const MESSAGE = messageCall();

const RPC: Refusals = {
  surface: "rpc",
  accepted: MESSAGE,
  work: TURNS,
  gateway: RPC_GATEWAY,
  refusals: [
    ...usualRefusals(MESSAGE),
    {
      figure: "-32004, past gateway.rpc.rateLimit",
      call: MESSAGE,
      error: "rate-limited",
      note: "the code for 429, in HTTP 200",
      gateway: { ...RPC_GATEWAY, rpc: ONCE_A_DAY },
    },
  ],
};

const HOOKS_GATEWAY = { ...BEATING, ...BEHIND_PROXY, limits: { ...BEATING.limits, webhookBody: BODY_LIMIT } };
const WAKE = wakeCall();

const HOOKS: Refusals = {
  surface: "hooks",
  accepted: WAKE,
  work: EVENTS,
  gateway: HOOKS_GATEWAY,
  refusals: [
    ...usualRefusals(WAKE),
    {
      figure: "429, past webhooks.rateLimit",
      call: WAKE,
      error: "rate-limited",
      note: "with the good token",
      gateway: { ...HOOKS_GATEWAY, webhooks: ONCE_A_DAY },
    },
  ],
};

/** P14: refused requests compared with accepted ones, and the part of an unauthenticated body that is read. */
export const REFUSAL_GATES: readonly Gate[] = [
  ...[RPC, HOOKS].map((refusals) => ({
    gate: "P14",
    figure: `refusals on ${refusals.surface}`,
    lack: whyNoLoad,
    measure: (options: BenchOptions) => compareRefusals(refusals, options),
  })),
  STRANGER_GATE,
];
