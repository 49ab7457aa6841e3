import type { Clock } from "#kit/clock.ts";
import { newBareId } from "#kit/ids.ts";
import { yieldToOthers } from "#kit/yield.ts";
import { notifyWatcher } from "#store/rules/news.ts";
import { isPieces, type Pieces } from "#store/rules/records.ts";
import { type RuleName, rules } from "#store/rules/rules.ts";
import type { Entry, GatewayEntry, Store, StoreWatcher } from "#store/store.ts";
import { weighEntry } from "#store/tables/layouts.ts";
import { MemoryTable } from "#store/tables/table.ts";
import { newBookmarks, newState, TableRecords } from "#store/tables/table-records.ts";
import { ArrayStream } from "./stream.ts";

/**
 * The default engine and the reference for the others: everything in this process, gone with it. Each method runs its rule in one
 * synchronous step, which makes it a transaction. It lets nothing go that was acknowledged, but by retention.
 */
export function createMemoryStore({ clock }: { clock: Clock }): Store {
  const records = new MemoryRecords();
  const watchers = new Set<StoreWatcher>();
  return {
    kind: "memory",
    durable: false,
    epoch: newBareId(clock.now()),
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    ping: async () => {},
    configure: async (policy) => records.setBookmarks({ policy }),
    ...methodsOf(clock, records, watchers),
    stats: () => records.stats(),
    agentCounts: (agent) => records.agentCounts(agent),
    openAgents: async () => records.openAgents(),
    [Symbol.asyncDispose]: async () => watchers.clear(),
  };
}

/** The records of one memory store: all tables and streams are in memory. */
class MemoryRecords extends TableRecords {
  constructor() {
    const state = newState();
    const journals = new Map<number, ArrayStream<Entry>>();
    const weigh = (entry: Entry, by: 1 | -1): void => {
      state.bytes += by * weighEntry(entry);
    };
    super({
      state,
      bookmarks: newBookmarks(),
      table: (layout, changed) => new MemoryTable(layout, changed),
      journal: (ordinal) => {
        const journal = journals.get(ordinal) ?? new ArrayStream<Entry>(weigh);
        journals.set(ordinal, journal);
        return journal;
      },
      gateway: new ArrayStream<GatewayEntry>(),
    });
    const { erasures } = this;
    const { delete: endErasure } = erasures;
    erasures.delete = (ordinal) => {
      endErasure(ordinal);
      journals.delete(ordinal);
    };
  }
}

/** A rule takes three arguments at most. */
type Method = (one?: unknown, two?: unknown, three?: unknown) => Promise<unknown>;

/** Each method runs its rule, and notifies the watchers before it resolves. */
function methodsOf(clock: Clock, records: MemoryRecords, watchers: ReadonlySet<StoreWatcher>): Pick<Store, RuleName> {
  const methods: Record<string, Method> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const run = rule as (records: MemoryRecords, ...args: unknown[]) => unknown;
    methods[name] = (one, two, three) => {
      try {
        records.moment = { now: clock.now(), time: clock.monotonic() };
        const answer = run(records, one, two, three);
        for (const news of records.takeNews()) for (const watcher of watchers) notifyWatcher(watcher, news);
        return isPieces(answer) ? runPieces(answer) : Promise.resolve(answer);
      } catch (error) {
        return Promise.reject(error);
      }
    };
  }
  return methods as Pick<Store, RuleName>;
}

/** Runs work that only reads a piece at a time, so that others run between. */
async function runPieces<T>(pieces: Pieces<T>): Promise<T> {
  for (let next = pieces.next(); ; next = pieces.next()) {
    if (next.done) return next.value;
    await yieldToOthers();
  }
}
