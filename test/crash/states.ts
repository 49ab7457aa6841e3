import type { FoundEvent, FoundTurn } from "./found.ts";

/** What was seen of a turn, an event or a session at one moment. */
export type Seen =
  | { kind: "turn"; turn: Pick<FoundTurn, "status" | "attempt" | "reply" | "error"> }
  | { kind: "event"; event: Pick<FoundEvent, "status" | "attempts" | "turnId"> }
  | { kind: "session"; messageCount: number; lastSeq: number };

const ENDED = ["completed", "failed", "cancelled"];

/** Where a turn is on its way: it waits, runs, is given back and runs again, and ends. */
const stepOf = ({ status, attempt }: Pick<FoundTurn, "status" | "attempt">): number =>
  ENDED.includes(status) ? Number.POSITIVE_INFINITY : status === "running" ? 2 * attempt : 2 * attempt + 1;

/** How what was seen later is behind what was seen before; undefined when it is not. */
export const backwards = (before: Seen, later: Seen): string | undefined => {
  if (before.kind === "turn" && later.kind === "turn") {
    const [from, to] = [before.turn, later.turn];
    if (stepOf(to) < stepOf(from)) return `${from.status} (attempt ${from.attempt}), then ${to.status} (${to.attempt})`;
    if (!ENDED.includes(from.status)) return undefined;
    return JSON.stringify(from) === JSON.stringify(to)
      ? undefined
      : `it had ended, and changed: ${JSON.stringify(from)}, then ${JSON.stringify(to)}`;
  }
  if (before.kind === "event" && later.kind === "event") {
    const [from, to] = [before.event, later.event];
    if (to.attempts < from.attempts) return `${from.attempts} attempts, then ${to.attempts}`;
    const isEnded = from.status !== "queued";
    return isEnded && (to.status !== from.status || to.turnId !== from.turnId)
      ? `${from.status} by ${from.turnId}, then ${to.status} by ${to.turnId}`
      : undefined;
  }
  if (before.kind === "session" && later.kind === "session")
    return later.messageCount < before.messageCount || later.lastSeq < before.lastSeq
      ? `${before.messageCount} messages up to ${before.lastSeq}, then ${later.messageCount} up to ${later.lastSeq}`
      : undefined;
  return "it became something else";
};
