import { yieldToOthers } from "#kit/yield.ts";
import type { Store } from "#store/store.ts";

/** A store whose transactions are all asynchronous, like those of an engine that waits for a disk or a database. */
export function slowStore(store: Store): Store {
  return new Proxy(store, {
    get: (own, name) => {
      const method = own[name as keyof Store];
      if (typeof method !== "function" || AT_ONCE.has(name)) return method;
      return async (...args: never[]) => {
        await yieldToOthers();
        return await (method as (...args: never[]) => unknown).apply(own, args);
      };
    },
  });
}

const AT_ONCE: ReadonlySet<string | symbol> = new Set(["watch", "stats", "agentCounts"]);
