import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createRandom } from "#test/harness/random.ts";
import type { Broken } from "./breaches.ts";
import { type Fleet, type FleetOptions, type GatewayNode, startFleet } from "./fleet.ts";
import { startFollowing } from "./following.ts";
import { type LogsOptions, verifyLogs } from "./logs.ts";
import { AGENTS, roomOf } from "./orders.ts";
import { readFound } from "./read.ts";
import { type Caller, createCaller, SECRETS } from "./requests.ts";
import { type Counts, startTraffic } from "./traffic.ts";
import { verify } from "./verify.ts";
import { startWatching } from "./watching.ts";

export type CrashOptions = {
  /** The built gateway that is started again and again. */
  main: string;
  /** The folder for configuration, logs and the clients' records; it is kept. */
  folder: string;
  store: object;
  gateways: number;
  kills: number;
  seed: number;
  lanes?: number;
  restMs?: number;
  env?: Record<string, string>;
  wrap?: FleetOptions["wrap"];
  /** Further sections of the configuration. */
  more?: object;
  /** Decides if another round follows; without it the number of rounds is the number of kills. */
  goesOn?: (round: number, seen: Seen) => boolean;
  /** Before the clients start. */
  before?: (fleet: Fleet) => Promise<void>;
  /** Repairs the effects of the rounds while clients still send. */
  settle?: (fleet: Fleet) => Promise<void>;
  /** After all work has ended and no client sends. */
  after?: (fleet: Fleet) => Promise<readonly Broken[]>;
  /** Disturbs the fleet in place of a kill, and restores it. */
  disturb?: (fleet: Fleet, round: number) => Promise<void>;
  lastBlow?: boolean;
  /** Returns further files that must not contain a secret, and further secrets. */
  logs?: () => Omit<LogsOptions, "nodes">;
  /** The longest time for an answer; a suspended gateway gives none. */
  answerMs?: number;
  say?: (words: string) => void;
};

/** The amount of work of each kind that could fail so far. */
export type Seen = Record<"acknowledged" | "repeated" | "turns" | "events" | "looks" | "pushed" | "resumed", number>;

export type CrashReport = {
  seed: number;
  kills: number;
  /** Rounds without a 2xx: the killed gateway had done nothing. */
  idle: number;
  seconds: number;
  counts: Counts;
  turns: number;
  /** Turns that started more than once, and those that started too often. */
  again: number;
  lost: number;
  events: number;
  sessions: number;
  entries: number;
  /** The number of readings during the run, and of entries that were pushed to a subscriber that continued elsewhere. */
  looks: number;
  pushed: number;
  resumed: number;
  /** The time from the last start until all acknowledged work was done. */
  resumedMs: number;
  broken: Broken[];
};

const SETTLED_MS = 120_000;
const READ_MS = 60_000;
const REPEATED = 200;
const KILL_WITHIN_MS = 600;
const REST_WITHIN_MS = 200;
/** Some are killed again before they are ready. */
const KILLED_STARTING = 0.1;
const FOLLOWED = AGENTS.flatMap((agent) => [0, 1].map((room) => roomOf("rpc", agent, room)));

function createReader() {
  const caller = createCaller(READ_MS);
  return { caller, [Symbol.dispose]: () => caller.close() };
}

/** Clients at full speed, gateways that are killed at random times, and finally a check of all promises. */
export async function runCrash(options: CrashOptions): Promise<CrashReport> {
  const { folder, store, gateways, kills, seed, lanes = 24, env, wrap, say = () => {} } = options;
  const { goesOn = (round) => round <= kills } = options;
  const began = performance.now();
  const random = createRandom(seed);
  const caller = createCaller(options.answerMs ?? 30_000);
  const { main, more } = options;
  const how = { main, folder, store, more, count: gateways, ...(env && { env }), ...(wrap && { wrap }) };
  await using fleet = await startFleet(how);
  await options.before?.(fleet);
  const traffic = startTraffic({
    caller,
    random: createRandom(seed + 1),
    run: `k${seed}`,
    urls: fleet.urls,
    lanes,
    restMs: options.restMs,
    file: join(folder, "acknowledged.jsonl"),
  });
  const watching = startWatching({ caller, random: createRandom(seed + 3), urls: fleet.urls, orders: traffic.orders });
  const following = startFollowing({
    random: createRandom(seed + 4),
    urls: fleet.urls,
    sessionIds: FOLLOWED,
    // In a short run it disconnects at once, because otherwise the run would only wait for it.
    ...(options.restMs !== undefined && { restMs: options.restMs }),
  });
  const seen = (): Seen => {
    const { acknowledged, repeated } = traffic.counts;
    const events = traffic.orders.filter(({ kind, acks }) => kind === "wake" && acks.length > 0).length;
    const { heard: pushed, resumed } = following.counts();
    return { acknowledged, repeated, events, turns: acknowledged - events, looks: watching.looks(), pushed, resumed };
  };
  let idle = 0;
  try {
    for (let round = 1; goesOn(round, seen()); round++) {
      const before = traffic.counts.acknowledged + traffic.counts.repeated;
      await pause(random.below(KILL_WITHIN_MS));
      if (options.disturb) await options.disturb(fleet, round);
      // After its rounds it only waits.
      else if (round <= kills) await killOne(random.pick(fleet.nodes), random);
      const { acknowledged, repeated, unknown } = traffic.counts;
      if (acknowledged + repeated === before) idle++;
      say(
        `${round}${options.goesOn ? "" : ` of ${kills}`}: ${acknowledged} acknowledged, ${repeated} repeats, ${unknown} unknown`,
      );
    }
    await options.settle?.(fleet);
    const blow = options.lastBlow === false ? [] : fleet.nodes;
    await Promise.all(blow.map((node) => node.kill()));
    const stopped = traffic.stop();
    for (const node of blow) node.start();
    await Promise.all(fleet.nodes.map((node) => node.ready()));
    const restarted = performance.now();
    await stopped;
    await untilDone(caller, fleet.urls, say);
    const resumedMs = performance.now() - restarted;
    say("all is done; asking again for what has a key");
    await traffic.repeatLast(REPEATED);
    await untilDone(caller, fleet.urls, say);
    await Promise.all([watching.stop(), following.stop()]);
    // The gateways do not cause the clients' persistent connections.
    caller.close();
    const accused = (await options.after?.(fleet)) ?? [];
    say("reading what is left");
    // However busy the machine is: nothing is killed or suspended any more.
    using reader = createReader();
    const found = await readFound(reader.caller, fleet.urls, traffic.orders);
    const broken = [
      ...accused,
      ...traffic.broken,
      ...verify(traffic.orders, found),
      ...watching.verify(found),
      ...following.verify(found),
      ...verifyLogs({ nodes: fleet.nodes, ...options.logs?.() }),
    ];
    const all = [...found.turns.values()];
    return {
      seed,
      kills: options.lastBlow === false ? kills : kills + 1,
      idle,
      seconds: (performance.now() - began) / 1_000,
      counts: traffic.counts,
      turns: all.length,
      again: all.filter(({ attempt }) => attempt > 1).length,
      lost: all.filter(({ status }) => status === "failed").length,
      events: found.events.size,
      sessions: found.sessions.size,
      entries: found.journals.reduce((sum, { entries }) => sum + entries.length, 0),
      looks: watching.looks(),
      pushed: following.counts().heard,
      resumed: following.counts().resumed,
      resumedMs,
      broken,
    };
  } finally {
    void traffic.stop();
    void watching.stop();
    void following.stop();
    caller.close();
  }
}

/** Kills it at once, and sometimes again while it starts; resolves when it serves, or when it serves a part. */
export async function killOne(node: GatewayNode, random: ReturnType<typeof createRandom>): Promise<void> {
  await node.kill();
  await pause(random.below(REST_WITHIN_MS));
  node.start();
  if (random.chance(KILLED_STARTING)) {
    await pause(random.below(KILL_WITHIN_MS));
    await node.kill();
    node.start();
  }
  if (random.chance(0.5)) await node.ready();
  else await node.up();
}

const WAITING = /^gateway_(turns_queued|turns_running|events_queued) (\d+)$/gm;

/** Waits until nothing is queued or running on any gateway; the verifier reports stuck work. */
async function untilDone(caller: Caller, urls: readonly string[], say: (words: string) => void): Promise<void> {
  const end = performance.now() + SETTLED_MS;
  for (;;) {
    const texts = await Promise.all(
      urls.map((url) => caller.ask(`${url}/metrics`, "GET", { authorization: `Bearer ${SECRETS.rpcToken}` })),
    );
    const left = texts.flatMap(({ text }) => [...text.matchAll(WAITING)]).filter(([, , count]) => count !== "0");
    if (left.length === 0) return;
    if (performance.now() > end) {
      say(`after ${SETTLED_MS / 1_000} s there is still ${left.map(([line]) => line).join(", ")}`);
      return;
    }
    await pause(20);
  }
}

/** The counts of a run, for a reader. */
export function reportOf({ counts, kills, idle, seconds, ...report }: CrashReport): string {
  return [
    `  ${kills > 0 ? `killed ${kills} times, ${idle} of them with nothing answered since the time before, in ` : ""}${seconds.toFixed(0)} s; ${counts.acknowledged} orders acknowledged, ${counts.repeated} repeats of keys,`,
    `  ${counts.refused} refused, ${counts.unavailable} times 503, ${counts.unknown} without an answer, ${counts.unreachable} times nobody there`,
    `  ${report.turns} turns, of which ${report.again} ran again and ${report.lost} were given up; ${report.events} events`,
    `  ${report.sessions} sessions, ${report.entries} entries of streams`,
    `  ${report.looks} looks at what had been acknowledged, ${report.pushed} pushes to one who went on elsewhere ${report.resumed} times`,
    `  all that was acknowledged was done ${(report.resumedMs / 1_000).toFixed(1)} s after the last start`,
  ].join("\n");
}
