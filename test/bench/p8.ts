import { type Compared, figureOf, measureGateway } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import type { Call } from "./calls.ts";
import { compare, type Figure, median, unmeasured } from "./figures.ts";
import type { GatewayWish, Started } from "./gateways.ts";
import { requireClean, runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { whenPortkey } from "./portkey.ts";
import { completionCall, doorCall, modelAt, PIECES, serviceAt, serviceCall, turnCall, WARM_UP_S } from "./proxied.ts";
import { startStandIn } from "./token-load.ts";

const NAMES = {
  service: "proxied turns of an agent's service, 50 connections",
  model: "proxied turns of a model, 50 connections",
  rest: "the same by POST /api/v1/chat/send",
  portkey: "proxied turns of a model, x Portkey's gateway",
} as const;

/**
 * P8: turns that are answered elsewhere, by the door for OpenAI's clients. The gate against a bare proxy is held to an agent's service, where both ask the same: a POST, answered by one
 * document of JSON. Of a model the gateway asks for a stream, which a proxy would hand on unread. The gate against Portkey is held to models, as it
 * knows nothing else, and they are asked as it asks by itself: for one document.
 */
export const measureProxied = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return Object.values(NAMES).map((name) => unmeasured("P8", name, why));
  const { rounds, seconds, say } = options;
  await using upstream = await startStandIn({ pieces: PIECES });
  await using proxy = await startBare("bare-proxy", [], [upstream.url]);
  await using portkey = await whenPortkey(options.portkey, upstream.url);
  const gateway = (what: keyof typeof NAMES, wish: GatewayWish, call = doorCall) => {
    const run = (server: Started, lasting: number) => load(server, call, lasting);
    return measureGateway({ figure: NAMES[what], gateway: wish, seconds, warmUpSeconds: WARM_UP_S, run }, 1);
  };
  const other = async (server: Started, call: Call, what: string): Promise<Compared> => {
    requireClean(await load(server, call, WARM_UP_S), what);
    const found = await load(server, call, seconds);
    requireClean(found, what);
    return found;
  };
  const none = (): Compared[] => [];
  const of = { proxy: none(), service: none(), model: none(), rest: none(), portkey: none() };
  for (let round = 1; round <= rounds; round++) {
    say(`P8: round ${round} of ${rounds}`);
    of.proxy.push(await other(proxy, serviceCall, "the bare proxy"));
    of.service.push(await gateway("service", serviceAt(upstream.url)));
    of.model.push(await gateway("model", modelAt(upstream.url)));
    of.rest.push(await gateway("rest", serviceAt(upstream.url), turnCall));
    if ("url" in portkey) of.portkey.push(await other(portkey, completionCall(false, portkey.headers), "Portkey"));
  }
  const beside = "a bare undici proxy";
  const row = { gate: "P8", beside };
  return [
    figureOf(of.service, of.proxy, {
      ...row,
      figure: NAMES.service,
      bound: { atLeast: 0.4, what: `x ${beside}` },
      note: busyOf(of.service),
    }),
    figureOf(of.model, of.proxy, { ...row, figure: NAMES.model, note: `no gate; ${busyOf(of.model)}` }),
    figureOf(of.rest, of.proxy, {
      ...row,
      figure: NAMES.rest,
      note: `no gate: of an agent's service; ${busyOf(of.rest)}`,
    }),
    "url" in portkey ? besidePortkey(of.model, of.portkey) : unmeasured("P8", NAMES.portkey, `Portkey ${portkey.why}`),
  ];
};

const load = ({ url, pid }: Started, call: Call, seconds: number) =>
  runLoad({ url, pid, call, sessions: 0, seed: 1, seconds });

const busyOf = (loads: readonly Compared[]): string =>
  `the gateway used ${Math.round(median(loads.map(({ busy }) => busy)) * 100)} % of its core`;

const besidePortkey = (model: readonly Compared[], portkey: readonly Compared[]): Figure => {
  const rates = (loads: readonly Compared[]) => loads.map(({ rate }) => rate);
  const p99 = median(portkey.map(({ p99 }) => p99 ?? Number.NaN)) / 1_000;
  return compare(rates(model), rates(portkey), {
    gate: "P8",
    figure: NAMES.portkey,
    unit: "requests/s",
    bound: { atLeast: 3, what: "x Portkey" },
    note: `Portkey ${Math.round(median(rates(portkey)))}, p99 ${p99.toFixed(0)} ms, ${busyOf(portkey).replace("the gateway", "it")}`,
  });
};
