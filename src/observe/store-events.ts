import type { EventTools } from "#observe/event-tools.ts";
import { createRepeats } from "#observe/repeats.ts";

/** The events of the store. */
export const createStoreEvents = ({ log, count, event }: EventTools) => {
  const failures = count("store_failures", "Calls to the store that failed.", ["operation"]);
  const troubles = createRepeats(({ of, ...ended }) => log("info", "store.settled", { operations: of, ...ended }));

  return {
    /** Counted always. What goes on has a line now and then, with how many had none before it, and all of it one when it is over. */
    storeFailed: ({ operation, error }: { operation: string; error: unknown }): void => {
      failures.at(operation).inc();
      const untold = troubles(operation, error instanceof Error ? `${error.name}: ${error.message}` : "");
      if (untold !== undefined) log("error", "store.failed", { operation, error, ...(untold > 0 && { untold }) });
    },
    /** The wall clock jumped, so that nothing is erased by its age for now. */
    retentionPaused: event<{ byMs: number }>("warn", "retention.paused", [
      "retention_pauses",
      "Jumps of the wall clock by more than an hour, after each of which nothing is erased by its age for an hour.",
    ]),
    retentionResumed: ({ byMs }: { byMs: number }): void => log("info", "retention.resumed", { byMs }),
    /** What the engine did by itself: that its database is gone or back, what it migrated, repaired or took over. */
    storeNoticed: ({ name, detail }: { name: string; detail: string }): void =>
      log(["unavailable", "repaired", "exposed"].includes(name) ? "warn" : "info", `store.${name}`, { detail }),
  };
};
