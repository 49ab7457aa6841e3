import { type Call, chatCall, messageCall, rpcCall } from "./calls.ts";
import { compare, type Figure, type Gate, measure } from "./figures.ts";
import { SQLITE, startPreloaded } from "./gateways.ts";
import { type Load, requireClean, runLoad, unlessIdle } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Delays, EventsLeft } from "./servers/preloaded.ts";
import { completedTurns, requireEnded } from "./work.ts";

// P11, P12 and P15: the effect of a full store on callers.

const SESSIONS = 1_000;
type Preloaded = Awaited<ReturnType<typeof startPreloaded>>;
type Full = { where: string; count: number; store?: object };

/** A load of turns that counts: nothing was refused, and all turns have ended. */
async function turnsLoad(
  { url, pid }: Preloaded,
  call: Call,
  sessions: number,
  seed: number,
  seconds: number,
): Promise<Load> {
  const before = await completedTurns(url);
  const load = await runLoad({ url, pid, call, sessions, seed, seconds });
  requireClean(load, url);
  await requireEnded(url, before + load.requests);
  return load;
}

function list<Round>(rounds: readonly Round[], pick: (round: Round) => number): string {
  return rounds.map((round) => Math.round(pick(round))).join(", ");
}

/**
 * P11: the delay of the event loop under P1's load. The load continues until two full collections have run, because a figure between them would be
 * too good.
 */
async function measureLoop(
  { where, count, store }: Full,
  { rounds, seconds, short, say }: BenchOptions,
): Promise<Figure[]> {
  const messages = short ? count / 10 : count;
  const seen: (Delays & { seconds: number; slowest: number })[] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`P11: ${messages} messages ${where}, round ${round} of ${rounds}`);
    await using server = await startPreloaded({ sessions: SESSIONS, turns: messages / 2, ...(store && { store }) });
    await turnsLoad(server, messageCall(), SESSIONS, 1, 2);
    await server.ask("watch");
    let [spent, slowest] = [0, 0];
    let delays: Delays;
    do {
      slowest = Math.max(slowest, (await turnsLoad(server, messageCall(), SESSIONS, spent + 2, seconds)).max);
      spent += seconds;
      delays = await server.ask<Delays>("delays");
    } while (!short && delays.fullCollections < 2 && spent < 90);
    seen.push({ ...delays, seconds: spent, slowest });
  }
  const name = `event loop with ${messages} messages ${where}`;
  const row = { gate: "P11", unit: "ms" };
  return [
    measure(
      seen.map(({ p999 }) => p999),
      {
        ...row,
        figure: `${name}, p99.9`,
        bound: { atMost: 60 },
        note: `rounds of ${list(seen, (r) => r.seconds)} s with ${list(seen, (r) => r.fullCollections)} full collections`,
      },
    ),
    measure([Math.max(...seen.map(({ worst }) => worst))], {
      ...row,
      figure: `${name}, worst of all rounds`,
      bound: { atMost: 300 },
      note: `longest pause of a collection: ${list(seen, (r) => r.worstPause)} ms; slowest answer: ${list(seen, (r) => r.slowest / 1_000)} ms`,
    }),
  ];
}

const LIST = rpcCall("session.list", { limit: 50 });

/** P12: the cost of many sessions, under P4's load over all of them, and for a page of their list. */
async function measureSessions(
  { where, count, store }: Full,
  { rounds, seconds, short, say }: BenchOptions,
): Promise<Figure[]> {
  const many = short ? count / 10 : count;
  say(`P12: ${many} sessions ${where}`);
  await using few = await startPreloaded({ sessions: SESSIONS, turns: SESSIONS, ...(store && { store }) });
  await using all = await startPreloaded({ sessions: many, turns: many, ...(store && { store }) });
  const sides = [
    { server: few, sessions: SESSIONS, chats: [] as Load[], lists: [] as Load[] },
    { server: all, sessions: many, chats: [] as Load[], lists: [] as Load[] },
  ] as const;
  for (let round = 0; round <= rounds; round++) {
    say(`P12: round ${round} of ${rounds}`);
    for (const { server, sessions, chats, lists } of sides) {
      const chat = await turnsLoad(server, chatCall(SESSIONS), sessions, round, seconds);
      const page = await runLoad({ ...server, call: LIST, sessions: 0, seed: 0, seconds, connections: 1 });
      requireClean(page, "P12");
      // The first round is a warm-up for the compiler.
      if (round > 0) [chats.push(chat), lists.push(page)];
    }
  }
  const [less, more] = sides;
  const row = { gate: "P12" };
  const rate = compare(
    more.chats.map((load) => load.rate),
    less.chats.map((load) => load.rate),
    {
      ...row,
      figure: `chat messages, ${SESSIONS} to ${many} sessions ${where}`,
      unit: "requests/s",
      bound: { atLeast: 0.85, what: `x ${SESSIONS}` },
      note: `CPU per request ${list(less.chats, (load) => load.cpu)} us, then ${list(more.chats, (load) => load.cpu)} us`,
    },
  );
  const page = compare(
    more.lists.map((load) => load.p50),
    less.lists.map((load) => load.p50),
    {
      ...row,
      figure: `session.list, a page of 50 ${where}, p50`,
      unit: "us",
      bound: { atMost: 3, what: `x ${SESSIONS}` },
    },
  );
  return [unlessIdle(rate, less.chats), page];
}

const EVENTS = 10_000;
const BEAT_LOAD_S = 2;
const BEAT_AFTER_MS = 500;
const LONGEST_BEAT_MS = 30_000;

/** P15: the latency of P1's calls while a beat handles 10 000 queued events. */
async function measureBeat({ rounds, say }: BenchOptions): Promise<Figure[]> {
  const seen: { idle: number; during: number; worst: number; beatMs: number; pause: number }[] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`P15: ${EVENTS} events, round ${round} of ${rounds}`);
    await using server = await startPreloaded({ sessions: SESSIONS, turns: SESSIONS, events: EVENTS });
    await turnsLoad(server, messageCall(), SESSIONS, 1, 2);
    const { p99: idle } = await turnsLoad(server, messageCall(), SESSIONS, 2, BEAT_LOAD_S);
    await server.ask("watch");
    const [{ p99: during }] = await Promise.all([
      turnsLoad(server, messageCall(), SESSIONS, 3, BEAT_LOAD_S),
      new Promise((resolve) => setTimeout(resolve, BEAT_AFTER_MS)).then(() => server.ask("beat")),
    ]);
    const beatMs = await untilHandled(server);
    const { worst, worstPause: pause } = await server.ask<Delays>("delays");
    seen.push({ idle, during, worst, beatMs, pause });
  }
  return [
    compare(
      seen.map(({ during }) => during),
      seen.map(({ idle }) => idle),
      {
        gate: "P15",
        figure: `/rpc while a beat handles ${EVENTS} events, p99`,
        unit: "us",
        bound: { atMost: 3, what: "x without" },
        note: `of a load of ${BEAT_LOAD_S} s, of which the beats took ${list(seen, ({ beatMs }) => beatMs)} ms`,
      },
    ),
    measure([Math.max(...seen.map(({ worst }) => worst))], {
      gate: "P15",
      figure: "event loop meanwhile, worst of all rounds",
      unit: "ms",
      bound: { atMost: 60 },
      note: `longest pause of a collection: ${list(seen, ({ pause }) => pause)} ms`,
    }),
  ];
}

/** The duration of the beat; throws unless every event was handled. */
async function untilHandled({ ask }: Preloaded): Promise<number> {
  const end = performance.now() + LONGEST_BEAT_MS;
  for (;;) {
    const { queued, dead, beatMs, handed } = await ask<EventsLeft>("events");
    if (dead > 0) throw new Error(`${dead} events are dead`);
    if (queued === 0 && beatMs !== null) {
      if (handed < EVENTS) throw new Error(`the beat handed over ${handed} of ${EVENTS} events`);
      return beatMs;
    }
    if (performance.now() > end) throw new Error(`${queued} events wait after ${LONGEST_BEAT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const HUNDRED_THOUSAND: Full = { where: "in memory", count: 100_000 };
const MILLION: Full = { where: "on SQLite", count: 1_000_000, store: SQLITE };

function gateOf(gate: string, figure: string, measure: Gate["measure"]): Gate {
  return {
    gate,
    figure,
    lack: whyNoLoad,
    measure,
  };
}

export const FULL_STORE_GATES: readonly Gate[] = [
  gateOf("P11", "event loop in memory", (options) => measureLoop(HUNDRED_THOUSAND, options)),
  gateOf("P11-SQLITE", "event loop on SQLite", (options) => measureLoop(MILLION, options)),
  gateOf("P12", "many sessions in memory", (options) => measureSessions(HUNDRED_THOUSAND, options)),
  gateOf("P12-SQLITE", "many sessions on SQLite", (options) => measureSessions(MILLION, options)),
  gateOf("P15", "a beat with many events", measureBeat),
];
