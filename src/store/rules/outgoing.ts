import type { Outgoing, OutgoingReply } from "#store/store.ts";
import type { Records } from "./records.ts";

export function isReply(message: Outgoing): message is OutgoingReply {
  return "channel" in message;
}

/** Puts a message at the end of its endpoint's queue. `ordinal`: the session with which it is deleted. */
export function addOutgoing(records: Records, message: Outgoing, ordinal: number): void {
  records.outgoing.put({
    message,
    ordinal,
    place: records.next("place"),
    dueAt: undefined,
    fence: 0,
    lease: undefined,
  });
  records.notify({ kind: "work", of: "outgoing" });
}
