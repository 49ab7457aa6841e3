import type { TimelineStep } from "#core/recorder/delivery-timeline.ts";
import { isTurnEnd } from "#core/sessions/journal.ts";
import { NO_USAGE, showCompleted, showUsage } from "#kit/usages.ts";
import type { Entry, Store, Turn } from "#store/store.ts";

const PAGE = 32;
/** What lies between a turn's beginning and its end are the turns that were before it. Past so many pages its record tells the rest. */
const PAGES = 40;

/** What the journal tells of a turn, from its beginning to its end. */
export const readTurnEntries = async (store: Pick<Store, "readEntries">, turn: Turn): Promise<Entry[]> => {
  const found: Entry[] = [];
  let after = turn.seq - 1;
  for (let page = 0; page < PAGES; page++) {
    const entries = await store.readEntries(turn.sessionId, { after, limit: PAGE });
    for (const entry of entries) {
      if (entry.turnId !== turn.turnId) continue;
      found.push(entry);
      if (isTurnEnd(entry)) return found;
    }
    if (entries.length < PAGE) return found;
    after = (entries.at(-1) as Entry).seq;
  }
  return [...found, ...unreadOf(turn, found)];
};

/** Of what was not read: how the latest attempt began, and the end. */
const unreadOf = (turn: Turn, found: readonly Entry[]): Entry[] => {
  const { turnId, seq, startedAt, endedAt, attempt, status, reply = "", error, usage = NO_USAGE } = turn;
  const isRead = found.some((entry) => entry.name === "turn.started" && entry.attempt === attempt);
  const unread: Entry[] = [];
  if (startedAt !== undefined && !isRead) unread.push({ seq, at: startedAt, turnId, name: "turn.started", attempt });
  if (endedAt === undefined) return unread;
  const end = { seq, at: endedAt, turnId, usage };
  if (status === "completed") unread.push({ ...end, name: "turn.completed", reply });
  else if (status === "cancelled") unread.push({ ...end, name: "turn.cancelled", reply });
  else if (error) unread.push({ ...end, name: "turn.failed", error });
  return unread;
};

/** The same as steps: how long it waited each time, each attempt, why and when it ended, and what it used. */
export const stepsOfEntries = (turn: Turn, entries: readonly Entry[]): TimelineStep[] => {
  const steps: TimelineStep[] = [];
  let queuedAt = turn.createdAt;
  let startedAt: number | undefined;
  let attempt = 0;
  for (const entry of entries) {
    const { at, name } = entry;
    if (name === "turn.queued") {
      // Queued once more, it was given back.
      if (attempt === 0) steps.push({ at, name, detail: undefined });
      else steps.push({ at, name: "turn.returned", detail: { attempt } });
      queuedAt = at;
      startedAt = undefined;
    } else if (name === "turn.started") {
      const isNext = entry.attempt === attempt + 1;
      attempt = entry.attempt;
      startedAt = at;
      steps.push({ at, name, detail: isNext ? { attempt, waited_ms: Math.max(0, at - queuedAt) } : { attempt } });
    } else if (isTurnEnd(entry)) {
      const latency = startedAt === undefined ? {} : { latency_ms: Math.max(0, at - startedAt) };
      const usage = (name === "turn.completed" ? showCompleted : showUsage)(entry.usage);
      steps.push({ at, name, detail: { ...endOf(entry), usage, ...latency } });
    }
  }
  return steps;
};

const endOf = (entry: Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }>): object => {
  if (entry.name === "turn.failed") return { error: entry.error.name, detail: entry.error.detail };
  return entry.name === "turn.cancelled" && entry.reply === "" ? {} : { reply: entry.reply };
};
