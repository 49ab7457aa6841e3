import type { Records } from "./records.ts";

/** Lets the first in a session's queue begin now. */
export function passOn(records: Records, ordinal: number): void {
  const next = records.turns.firstInQueue(ordinal);
  if (!next) return;
  records.turns.put({ ...next, open: { ...next.open, readyOrder: records.next("order") } });
  records.notify({ kind: "work", of: "turn" });
}
