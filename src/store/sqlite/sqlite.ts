import type { Clock } from "#kit/clock.ts";
import { type RuleName, rules } from "#store/rules/rules.ts";
import type { AgentCounts, Store, StoreNotice } from "#store/store.ts";
import { behindLink, exposureOf, makeOwn } from "./file.ts";
import { lockFile } from "./lock.ts";
import type { FreeOf } from "./messages.ts";
import { type StartThread, WorkerLink } from "./worker-link.ts";

/** The worker as it is built: beside the chunk that this file becomes. From sources it is the one of the last build. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/chunks/sqlite-worker.js" : "./sqlite-worker.js",
  import.meta.url,
);

/**
 * A file, for one process at a time. A thread of its own has the connection; calls that come together share a transaction, and are
 * answered when it is on disk. Rejects, in a sentence, when the file cannot be opened.
 */
export async function createSqliteStore({
  clock,
  path: named,
  notice = () => {},
  worker = WORKER,
}: {
  clock: Clock;
  path: string;
  notice?: (notice: StoreNotice) => void;
  /** The thread's program, or a function that starts one. */
  worker?: URL | StartThread;
}): Promise<Store> {
  makeOwn(named);
  const path = behindLink(named);
  const lock = lockFile(path);
  const link = new WorkerLink(clock, { path, worker, notice, beforeReopening: lock.renew });
  try {
    await link.open();
  } catch (error) {
    lock.release();
    throw error;
  }
  const exposure = exposureOf(path);
  if (exposure !== undefined) notice({ name: "exposed", detail: exposure });
  return {
    kind: "sqlite",
    durable: true,
    epoch: link.epoch,
    watch: (watcher) => link.watch(watcher),
    ping: () => link.call("ping"),
    configure: (policy) => link.configure(policy),
    ...rulesOf(link),
    claimTurns: claimTurnsOf(link),
    stats: () => link.totals,
    agentCounts: (agent) => link.agents.get(agent) ?? NO_COUNTS,
    openAgents: async () => [...link.agents].flatMap(([agent, counts]) => (isOpen(counts) ? agent : [])),
    [Symbol.asyncDispose]: async () => {
      await link.close();
      lock.release();
    },
  };
}

const NO_COUNTS: AgentCounts = {
  queued: 0,
  running: 0,
  compactions: 0,
  waitingEvents: 0,
  nextBeatAt: undefined,
  lastEndedAt: undefined,
  failing: false,
  pausedAt: undefined,
};

function isOpen({ queued, running, compactions, waitingEvents }: AgentCounts): boolean {
  return queued + running + compactions + waitingEvents > 0;
}

/** Each method runs its rule in the worker. */
function rulesOf(link: WorkerLink): Pick<Store, RuleName> {
  return Object.fromEntries(
    Object.keys(rules).map((name) => [name, (...args: unknown[]) => link.call(name, ...args)]),
  ) as unknown as Pick<Store, RuleName>;
}

/** A function cannot be passed to another thread: so `freeOf` is called here, for every agent with queued work. */
function claimTurnsOf(link: WorkerLink): Store["claimTurns"] {
  return async ({ free, freeOf: freeOfAgent, newMessageId, ...request }) => {
    const freeOf = new Map<string, FreeOf>();
    let most = 0;
    for (const [agent, { queued, compactions }] of link.agents) {
      if (queued + compactions === 0) continue;
      const places = { other: freeOfAgent(agent, "other"), compact: freeOfAgent(agent, "compact") };
      freeOf.set(agent, places);
      most += Math.min(places.other, queued) + Math.min(places.compact, compactions);
    }
    // Turns that are queued meanwhile cause a notification, and are claimed after it.
    if (freeOf.size === 0) return { turns: [], nextDueInMs: undefined };
    const messageIds = Array.from({ length: Math.max(Math.min(most, free), 0) }, newMessageId);
    return await link.call("claimTurns", { ...request, free, freeOf, messageIds });
  };
}
