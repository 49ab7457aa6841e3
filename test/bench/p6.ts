import { type Compared, compareWithBare } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { messageCall, SAME_SESSION } from "./calls.ts";
import { type Figure, unmeasured } from "./figures.ts";
import type { GatewayWish, Started } from "./gateways.ts";
import { runStreams } from "./h2load.ts";
import { runLoad } from "./load.ts";
import { whyNoLoad, whyNoStreams } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const NAMES = {
  clear: "POST /rpc agent.sendMessage, clear-text HTTP/2, 10 x 10 streams",
  tls: "the same over TLS, HTTP/1.1",
  tlsStreams: "the same over TLS, HTTP/2, 10 x 10 streams",
} as const;
const CONNECTIONS = 10;
const STREAMS = 10;
const SESSIONS = 1_000;

// h2load has one body, and so one session: it may grow longer than any of a person's, and is not summed up meanwhile.
const ONE_SESSION: GatewayWish = {
  limits: { messagesPerSession: 10_000_000, turnsPerSession: 1_000_000 },
  sessions: { compactAt: 0 },
};

/** P6: P1's messages over HTTP/2 in clear text, and over TLS, each beside the bare server that is nearest. */
export const measureHttp2 = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return Object.values(NAMES).map((name) => unmeasured("P6", name, why));
  const noStreams = whyNoStreams();
  const unless = (name: string, measure: (options: BenchOptions) => Promise<Figure>) =>
    noStreams ? unmeasured("P6", name, noStreams) : measure(options);
  return [
    await unless(NAMES.clear, measureClear),
    await measureTls(options),
    await unless(NAMES.tlsStreams, measureTlsStreams),
  ];
};

const place = ({ url, tlsUrl, pid }: Started) => ({ url: tlsUrl ?? url, pid });

const streamsTo = (server: Started, seconds: number): Promise<Compared> =>
  runStreams({
    ...place(server),
    call: messageCall(SAME_SESSION),
    seconds,
    connections: CONNECTIONS,
    streams: STREAMS,
  });

const measureClear = async (options: BenchOptions): Promise<Figure> => {
  await using bare = await startBare("bare-http2");
  return await compareWithBare({
    ...options,
    gate: "P6",
    figure: NAMES.clear,
    bound: { atLeast: 0.4, what: "x bare" },
    note: "all to one session, as h2load has one body; beside a bare node:http2",
    bare,
    gateway: ONE_SESSION,
    run: streamsTo,
  });
};

const measureTls = async (options: BenchOptions): Promise<Figure> => {
  await using bare = await startBare("bare-https");
  const load = { call: messageCall(), sessions: SESSIONS };
  return await compareWithBare({
    ...options,
    gate: "P6",
    figure: NAMES.tls,
    bound: { atLeast: 0.55, what: "x bare" },
    note: "by wrk as P1; beside a bare node:https",
    bare,
    gateway: { tls: true },
    run: (server, seconds, seed) => runLoad({ ...load, ...place(server), seconds, seed }),
  });
};

const measureTlsStreams = async (options: BenchOptions): Promise<Figure> => {
  await using bare = await startBare("bare-https");
  return await compareWithBare({
    ...options,
    gate: "P6",
    figure: NAMES.tlsStreams,
    note: "no gate: beside the same bare node:https, which speaks HTTP/1.1, with h2load's 100 connections",
    bare,
    gateway: { ...ONE_SESSION, tls: true },
    run: (server, seconds) => (server === bare ? connectionsTo(server, seconds) : streamsTo(server, seconds)),
  });
};

const connectionsTo = (server: Started, seconds: number): Promise<Compared> =>
  runStreams({
    ...place(server),
    call: messageCall(SAME_SESSION),
    seconds,
    connections: CONNECTIONS * STREAMS,
    streams: 1,
    http1: true,
  });
