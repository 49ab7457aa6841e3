import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "#test/harness/ports.ts";
import { type Compared, figureOf, measureGateway } from "./against-bare.ts";
import { buildServer } from "./builds.ts";
import type { Call } from "./calls.ts";
import { startChild, startOnClientCore, stopChild } from "./children.ts";
import { compare, type Figure, type Gate, measure, median, unmeasured } from "./figures.ts";
import { type GatewayOptions, REST_KEY, type Started, startBare, startGateway, untilAnswers } from "./gateways.ts";
import { type Report, requireClean, runLoad } from "./load.ts";
import { pinned, SERVER_CORE, whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { StandInOptions } from "./stand-in-words.ts";

// P7 and P8: turns of a model or a web service, compared with a bare proxy and Portkey's gateway.

/** The pieces of an answer that arrives at once. */
export const PIECES = 10;
/** The run time of each side before the measurement: V8 compiles the code of a turn for seconds. */
const WARM_UP_S = 6;
const MESSAGE = "What changed since yesterday? ".repeat(4);
const JSON_TYPE = { "content-type": "application/json" };
const CONCURRENCY = 4_096;
const gateway = { openai: { enabled: true } };

/** A stand-in for a model and for a web service (servers/stand-in.ts), on the client's core. */
export async function startStandIn(options: StandInOptions): Promise<Started> {
  const { child, said } = await startOnClientCore<{ port: number }>(await buildServer("stand-in"), options);
  const dispose = () => stopChild(child);
  return { url: `http://127.0.0.1:${said.port}`, pid: child.pid as number, child, [Symbol.asyncDispose]: dispose };
}

/** A gateway whose agent is a model. */
export function modelAt(url: string): GatewayOptions {
  return {
    gateway,
    providers: { local: { type: "openai-compatible", baseUrl: `${url}/v1` } },
    agent: { backend: "model", models: { one: { provider: "local", model: "stand-in" } }, concurrency: CONCURRENCY },
  };
}

/** A gateway whose agent is a web service that stores its conversations itself. */
function serviceAt(url: string): GatewayOptions {
  return {
    gateway,
    agent: { backend: "http", http: { url: `${url}/turns`, history: false }, concurrency: CONCURRENCY },
  };
}

/** A turn over the OpenAI-compatible API, like the request to a proxy. */
const DOOR_CALL: Call = {
  path: "/v1/chat/completions",
  headers: { ...JSON_TYPE, authorization: `Bearer ${REST_KEY}` },
  body: JSON.stringify({ model: "main", messages: [{ role: "user", content: MESSAGE }] }),
};

/** The same request to the model itself, or to a proxy before it; the gateway requests a stream. */
function completionCall(stream: boolean, headers: Readonly<Record<string, string>> = {}): Call {
  return {
    path: "/v1/chat/completions",
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify({ model: "stand-in", messages: [{ role: "user", content: MESSAGE }], stream }),
  };
}

/** The same request to the web service. */
const SERVICE_CALL: Call = {
  path: "/turns",
  headers: { ...JSON_TYPE, accept: "application/json" },
  body: JSON.stringify({ message: MESSAGE }),
};

const PACKAGE = "node_modules/@portkey-ai/gateway/build/start-server.js";
const whyNoPortkey = "Portkey is not installed (--portkey DIR)";

/** Portkey's gateway in the folder of its installation, and the call that it forwards to `model`. Only this comparison needs it. */
async function startPortkey(folder = ".", model: string): Promise<(Started & { call: Call }) | undefined> {
  const file = join(folder, PACKAGE);
  if (!existsSync(file)) return undefined;
  const port = await freePort();
  const [command, args] = pinned(SERVER_CORE, process.execPath, [file, `--port=${port}`, "--headless"]);
  const env = { ...process.env, NODE_ENV: "production", TRUSTED_CUSTOM_HOSTS: "127.0.0.1" };
  const child = startChild(command, args, { env });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(url);
  const headers = {
    authorization: "Bearer none",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `${model}/v1`,
  };
  const call = completionCall(false, headers);
  return { url, pid: child.pid as number, child, call, [Symbol.asyncDispose]: () => stopChild(child) };
}

function load({ url, pid }: Started, call: Call, seconds: number, connections?: number) {
  return runLoad({ url, pid, call, sessions: 0, seed: 1, seconds, ...(connections && { connections }) });
}

/** A measured load after a warm-up. */
async function warmLoad(
  server: Started,
  call: Call,
  seconds: number,
  connections?: number,
): Promise<Compared & Report> {
  requireClean(await load(server, call, WARM_UP_S, connections), server.url);
  const found = await load(server, call, seconds, connections);
  requireClean(found, server.url);
  return found;
}

/** P7: the time of a turn whose model answers at once, minus the time of the model itself; and the same for other gateways in the same rounds. */
async function measureAdded({ rounds, seconds, say, ...options }: BenchOptions): Promise<Figure[]> {
  const none = (): Report[] => [];
  const times = { direct: none(), gateway: none(), proxy: none(), portkey: none() };
  await using model = await startStandIn({ pieces: PIECES });
  await using proxy = await startBare("bare-proxy", [], [model.url]);
  await using portkey = await startPortkey(options.portkey, model.url);
  for (let round = 1; round <= rounds; round++) {
    say(`P7: round ${round} of ${rounds}`);
    await using gateway = await startGateway(modelAt(model.url));
    await untilAnswers(`${gateway.url}/readyz`);
    times.direct.push(await warmLoad(model, completionCall(true), seconds, 1));
    times.gateway.push(await warmLoad(gateway, DOOR_CALL, seconds, 1));
    times.proxy.push(await warmLoad(proxy, completionCall(true), seconds, 1));
    if (portkey) times.portkey.push(await warmLoad(portkey, portkey.call, seconds, 1));
  }
  const added = (of: keyof typeof times, share: "p50" | "p99"): number[] =>
    times[of].map((time, round) => (time[share] - (times.direct[round] as Report)[share]) / 1_000);
  const figure = (share: "p50" | "p99", shareOfPortkey: number): Figure => {
    const theirs = portkey && median(added("portkey", share));
    const direct = median(times.direct.map((time) => time[share])) / 1_000;
    return measure(added("gateway", share), {
      gate: "P7",
      figure: `added to a model that answers at once, one connection: ${share}`,
      unit: "ms",
      ...(theirs !== undefined && { bound: { atMost: theirs * shareOfPortkey } }),
      note:
        `the model itself ${direct.toFixed(2)} ms; a bare undici proxy adds ${median(added("proxy", share)).toFixed(2)} ms, ` +
        (theirs === undefined ? whyNoPortkey : `Portkey ${theirs.toFixed(2)} ms`),
    });
  };
  return [figure("p50", 0.7), figure("p99", 1)];
}

/**
 * P8: turns of remote agents. The gate against a bare proxy uses a web service, because both send the same request: a POST, answered by one JSON
 * document. The gate against Portkey uses models, which is all that it supports.
 */
async function measureProxied({ rounds, seconds, say, ...options }: BenchOptions): Promise<Figure[]> {
  const names = { service: "proxied turns of an agent's service, 50 connections", model: "proxied turns of a model" };
  await using upstream = await startStandIn({ pieces: PIECES });
  await using proxy = await startBare("bare-proxy", [], [upstream.url]);
  await using portkey = await startPortkey(options.portkey, upstream.url);
  const turns = (figure: string, how: GatewayOptions) => {
    const run = (server: Started, lasting: number) => load(server, DOOR_CALL, lasting);
    return measureGateway({ figure, gateway: how, warmUpSeconds: WARM_UP_S, run }, seconds, 1);
  };
  const none = (): Compared[] => [];
  const of = { proxy: none(), service: none(), model: none(), portkey: none() };
  for (let round = 1; round <= rounds; round++) {
    say(`P8: round ${round} of ${rounds}`);
    of.proxy.push(await warmLoad(proxy, SERVICE_CALL, seconds));
    of.service.push(await turns(names.service, serviceAt(upstream.url)));
    if (!portkey) continue;
    of.model.push(await turns(names.model, modelAt(upstream.url)));
    of.portkey.push(await warmLoad(portkey, portkey.call, seconds));
  }
  const beside = "a bare undici proxy";
  const bound = { atLeast: 0.25, what: `x ${beside}` };
  const rates = (loads: readonly Compared[]) => loads.map(({ rate }) => rate);
  const row = { gate: "P8", figure: `${names.model}, x Portkey's gateway`, unit: "requests/s" };
  return [
    figureOf(of.service, of.proxy, { gate: "P8", figure: names.service, bound, beside }),
    portkey
      ? compare(rates(of.model), rates(of.portkey), { ...row, bound: { atLeast: 2, what: "x Portkey" } })
      : unmeasured("P8", row.figure, whyNoPortkey),
  ];
}

export const MODEL_GATES: readonly Gate[] = [
  { gate: "P7", figure: "added to a model that answers at once", lack: whyNoLoad, measure: measureAdded },
  { gate: "P8", figure: "proxied turns", lack: whyNoLoad, measure: measureProxied },
];
