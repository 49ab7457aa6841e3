import { compareWithBare } from "./against-bare.ts";
import { chatCall, messageCall, SAME_SESSION, wakeCall } from "./calls.ts";
import type { Gate } from "./figures.ts";
import { type GatewayOptions, SQLITE, type Started } from "./gateways.ts";
import { CONNECTIONS, runLoad, runStreams } from "./load.ts";
import { whyNoLoad, whyNoStreams } from "./machine.ts";
import { EVENTS, KEPT_EVENTS } from "./work.ts";

// P1 to P4 and P6: calls over HTTP, each compared with the most similar bare server.

const SESSIONS = 1_000;
const BEAT = "500ms";

/** Webhooks without a limit, whose events are handled while they arrive. */
export const BEATING: GatewayOptions = {
  webhooks: { rateLimit: { maxRequests: 0 } },
  agent: { heartbeat: { every: BEAT } },
  limits: { events: 10_000_000 },
};

function overTls({ url, tlsUrl = url, pid }: Started): Pick<Started, "url" | "pid"> {
  return { url: tlsUrl, pid };
}

function message(server: Started, seconds: number, seed: number) {
  return runLoad({ ...overTls(server), call: messageCall(), sessions: SESSIONS, seconds, seed });
}

function wake({ url, pid }: Started, seconds: number, seed: number) {
  return runLoad({ url, pid, call: wakeCall(), sessions: 0, seconds, seed });
}

const P1 = {
  gate: "P1",
  figure: "POST /rpc agent.sendMessage, over 1 000 sessions",
  bound: { atLeast: 0.22, what: "x bare" },
  bare: "bare-http",
  run: message,
} as const;

const P2 = {
  gate: "P2",
  figure: "POST /hooks/wake, each with another body",
  bound: { atLeast: 0.27, what: "x bare" },
  bare: "bare-http",
  gateway: BEATING,
  work: EVENTS,
  note: `with a heartbeat every ${BEAT}, and all handled within 2 s after the end`,
  run: wake,
} as const;

const P3 = {
  gate: "P3",
  figure: `POST /hooks/wake on SQLite, on disk before the 200, ${CONNECTIONS} connections`,
  bound: { atLeast: 0.2, what: "x bare" },
  p99: { atMost: 5, what: "x bare" },
  bare: "bare-http",
  gateway: { ...BEATING, agent: {}, store: SQLITE },
  work: KEPT_EVENTS,
  // The code of two threads is compiled by a third one on the same core, which affects the measurement for a long time.
  warmUpSeconds: 8,
  note: "the gateway's threads share a core; the events wait for their heartbeat, and all exist at the end",
  run: wake,
} as const;

const P4 = [0, SESSIONS].map((sessions) => ({
  gate: "P4",
  figure: `POST /api/v1/chat/send, ${sessions === 0 ? "a session each" : "over 1 000 sessions"}`,
  bound: { atLeast: 0.18, what: "x bare" },
  bare: "bare-http" as const,
  run: ({ url, pid }: Started, seconds: number, seed: number) =>
    runLoad({ url, pid, call: chatCall(sessions), sessions, seconds, seed }),
}));

const P6 = {
  gate: "P6",
  figure: "POST /rpc agent.sendMessage, clear-text HTTP/2, 10 x 10 streams",
  bound: { atLeast: 0.25, what: "x bare" },
  bare: "bare-http2",
  // h2load has one body, and so one session: it may be longer than any user's, and is not compacted meanwhile.
  gateway: {
    limits: { messagesPerSession: 10_000_000, turnsPerSession: 1_000_000 },
    sessions: { compactAt: 0 },
  },
  note: "all to one session, because h2load has one body; compared with a bare node:http2",
  run: ({ url, pid }: Started, seconds: number) =>
    runStreams({ url, pid, call: messageCall(SAME_SESSION), seconds, connections: 10, streams: 10 }),
} as const;

const P6_TLS = {
  gate: "P6",
  figure: "the messages of P1 over TLS, HTTP/1.1",
  bound: { atLeast: 0.25, what: "x bare" },
  bare: "bare-https",
  gateway: { tls: true },
  note: "compared with a bare node:https",
  run: message,
} as const;

export const HTTP_GATES: readonly Gate[] = [P1, P2, P3, ...P4, P6, P6_TLS].map((comparison) => ({
  gate: comparison.gate,
  figure: comparison.figure,
  lack: comparison === P6 ? whyNoStreams : whyNoLoad,
  measure: (options) => compareWithBare(comparison, options),
}));
