/** The retention of sessions. */
import { isOfWebhook } from "#kit/ids.ts";
import type { SessionBounds, SessionRecord } from "./records.ts";

/** The time from which the retention of a session, or of the head of its journal, is counted. */
export function idleAt({ session: { updatedAt }, headDueAt = Infinity }: SessionRecord): number {
  return Math.min(updatedAt, headDueAt);
}

export function boundOf(sessionId: string, { sessionsBefore, webhookSessionsBefore }: SessionBounds): number {
  return isOfWebhook(sessionId) ? webhookSessionsBefore : sessionsBefore;
}
