import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";
import type { ApiKey, Store, StoreWatcher } from "#store/store.ts";
import { announcementMethods } from "./announcements.ts";
import { beatMethods } from "./beats.ts";
import { compactionMethods } from "./compactions.ts";
import { deliveryMethods } from "./deliveries.ts";
import { eventMethods } from "./events.ts";
import { gatewayMethods } from "./gateway-log.ts";
import { pauseMethods } from "./pauses.ts";
import { readMethods } from "./reads.ts";
import { createState } from "./state.ts";
import { sweepMethod } from "./sweep.ts";
import { turnListMethods } from "./turn-lists.ts";
import { turnMethods } from "./turns.ts";

/**
 * The default engine and the reference for the others: everything in this process, gone with it. Each method does its work in one
 * synchronous step, which makes it a transaction. It lets nothing go that was acknowledged, but by retention.
 */
export const createMemoryStore = ({ clock }: { clock: Clock }): Store => {
  const state = createState(clock);
  const keys = new Map<string, ApiKey>();
  return {
    kind: "memory",
    durable: false,
    epoch: newBareId(clock.now()),
    watch: (watcher: StoreWatcher) => {
      state.watchers.add(watcher);
      return () => state.watchers.delete(watcher);
    },
    ping: async () => {},
    ...turnMethods(state),
    ...turnListMethods(state),
    ...readMethods(state),
    ...sweepMethod(state),
    ...compactionMethods(state),
    ...gatewayMethods(state),
    ...eventMethods(state),
    ...beatMethods(state),
    ...pauseMethods(state),
    ...announcementMethods(state),
    ...deliveryMethods(state),
    listKeys: async () => [...keys.values()].map((key) => ({ ...key })),
    createKey: async (key) => {
      if (keys.has(key.keyId)) throw new GatewayError("internal", "key id in use");
      keys.set(key.keyId, { ...key });
    },
    replaceKey: async (keyId, key, endsAt) => {
      const old = keys.get(keyId);
      if (!old || old.replacedBy !== undefined) return false;
      keys.set(keyId, { ...old, replacedBy: key.keyId, expiresAt: Math.min(old.expiresAt ?? endsAt, endsAt) });
      keys.set(key.keyId, { ...key });
      return true;
    },
    revokeKey: async (keyId) => keys.delete(keyId),
    touchKey: async (keyId, now) => {
      const key = keys.get(keyId);
      if (key) key.lastUsedAt = Math.max(now, key.lastUsedAt ?? 0);
    },
    [Symbol.asyncDispose]: async () => {
      state.watchers.clear();
    },
  };
};
