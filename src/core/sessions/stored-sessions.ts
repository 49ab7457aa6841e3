import type { CoreParts } from "#core/parts.ts";
import { GatewayError } from "#kit/errors.ts";
import type { ListedSession, Message, Page, Session } from "#store/store.ts";

/** A session with a page of its messages, newest first. */
export type SessionPage = {
  session: ListedSession;
  /** The summary of the compacted messages. */
  summary: string | null;
  messages: readonly Message[];
  /** The cursor for the next page; null on the last page. */
  nextCursor: string | null;
};

type PageRequest = { limit: number; cursor: string | undefined; includeCompacted: boolean };

/** The most characters on a page, because a long answer delays other calls. */
const PAGE_CHARACTERS = 512 * 1024;

/** Lists, reads and deletes stored sessions. */
export function createStoredSessions({ store, agents, clock }: CoreParts) {
  return {
    /** Throws `agent-not-found` for an agent that has neither a configuration nor sessions. */
    async list(request: {
      limit: number;
      agent: string | undefined;
      cursor: string | undefined;
    }): Promise<Page<ListedSession>> {
      const { limit, agent, cursor } = request;
      const page = await store.listSessions({
        limit,
        ...(agent !== undefined && { agent }),
        ...(cursor !== undefined && { cursor }),
      });
      if (agent !== undefined && page.items.length === 0) agents.get(agent);
      return page;
    },

    /** Throws `session-not-found`, and `invalid-params` for a cursor that was not returned for this session. */
    async read(sessionId: string, { limit, cursor, includeCompacted }: PageRequest): Promise<SessionPage> {
      const session = await store.getSession(sessionId);
      if (!session) throw sessionNotFound(sessionId);
      const before = cursor === undefined ? session.lastSeq + 1 : placeOf(session, cursor);
      const [summary, found] = await Promise.all([
        store.readSummary(sessionId),
        store.readMessages(sessionId, { before, limit: limit + 1, characters: PAGE_CHARACTERS, includeCompacted }),
      ]);
      const messages = found.slice(0, limit);
      const last = messages.at(-1);
      const hasMore = found.length > limit || charactersOf(messages) >= PAGE_CHARACTERS;
      const nextCursor = hasMore && last ? cursorOf(session, last) : null;
      return { session, summary: summary?.text ?? null, messages, nextCursor };
    },

    /** Deletes a session with its messages, and cancels its turns. Throws `session-not-found`. */
    async delete(sessionId: string): Promise<{ turnsCancelled: number }> {
      const deleted = await store.deleteSession(sessionId, clock.now());
      if (!deleted) throw sessionNotFound(sessionId);
      return deleted;
    },
  };
}

export function sessionNotFound(sessionId: string): GatewayError {
  return new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
}

function charactersOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { text }) => sum + text.length, 0);
}

/** The cursor of a message. It contains the session's ordinal, so that it is not valid for a later session with the same id. */
function cursorOf({ ordinal }: Session, { seq }: Pick<Message, "seq">): string {
  return `m${ordinal.toString(36)}.${seq.toString(36)}`;
}

function placeOf(session: Session, cursor: string): number {
  const seq = Number.parseInt(/^m[0-9a-z]{1,10}\.([0-9a-z]{1,10})$/.exec(cursor)?.[1] ?? "", 36);
  if (seq > 0 && seq <= session.lastSeq && cursorOf(session, { seq }) === cursor) return seq;
  throw new GatewayError("invalid-params", "`cursor` is not one that this list gave.");
}
