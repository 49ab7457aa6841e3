import type { SharedStore } from "#store/store.ts";
import type { PushSink } from "#wire/socket/pump.ts";
import { subscribers } from "#wire/socket/subscriber.ts";
import type { TestCore } from "../../core/start-core.ts";

export type TestSink = PushSink & { caller: PushSink["caller"]; hasRoom: boolean; names: string[]; cuts: number };

/** A connection that records the names of its pushes. */
export function createSink(): TestSink {
  return {
    caller: { surface: "rpc", tokenId: "tests", name: "tests", permissions: ["*"] },
    isOpen: true,
    isFull: false,
    hasRoom: true,
    names: [],
    cuts: 0,
    push(frame) {
      this.names.push(JSON.parse(frame.subarray(frame.indexOf("{")).toString()).method);
    },
    hold() {},
    closeTooSlow() {
      this.cuts++;
    },
  };
}

/** The subscriptions of a connection. With `isShared`, other gateways may run turns. */
export function subscriberOf({ core, store }: TestCore, sink: PushSink, isShared = false) {
  const shared = isShared ? ({} as SharedStore) : undefined;
  const parts = { ...core, store: { ...store, shared }, events: { storeFailed() {} }, requireAgent() {} };
  return subscribers({ ...parts, hideInJson: (json) => json })(sink);
}
