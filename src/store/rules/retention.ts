/** The retention of sessions. */
import type { SessionBounds, SessionRecord } from "./records.ts";

/** The time from which the retention of a session, or of the head of its journal, is counted. */
export function idleAt({ session: { updatedAt }, headDueAt = Infinity }: SessionRecord): number {
  return Math.min(updatedAt, headDueAt);
}

/** Sessions of webhooks have a retention of their own. */
export function isOfWebhook(sessionId: string): boolean {
  return sessionId.startsWith("webhook:");
}

export function boundOf(sessionId: string, { sessionsBefore, webhookSessionsBefore }: SessionBounds): number {
  return isOfWebhook(sessionId) ? webhookSessionsBefore : sessionsBefore;
}
