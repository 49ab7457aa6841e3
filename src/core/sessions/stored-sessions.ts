import type { CoreParts } from "#core/parts.ts";
import { GatewayError } from "#kit/errors.ts";
import { reaches } from "#kit/reach.ts";
import { charactersOf } from "#kit/tool-calls.ts";
import type { ListedSession, Message, Page, Session, Store, Turn } from "#store/store.ts";
import { readTurnEntries } from "./turn-entries.ts";

/** A session with a page of its messages, newest first. */
export type SessionPage = {
  session: ListedSession;
  /** The summary of the compacted messages. */
  summary: string | null;
  messages: readonly Message[];
  /** The turns of these messages, if they are asked for. */
  turns: readonly Turn[] | undefined;
  /** The cursor for the next page; null on the last page. */
  nextCursor: string | null;
};

/** `agents`: only sessions of these; undefined for all. */
type ListRequest = { limit: number; agents: readonly string[] | undefined; cursor: string | undefined };

type PageRequest = {
  limit: number;
  cursor: string | undefined;
  includeCompacted: boolean;
  /** Only the messages of this turn. */
  turnId: string | undefined;
  includeTurns: boolean;
  /** Only a session of these agents; undefined for all. */
  agents?: readonly string[] | undefined;
};

/** The most characters on a page with its tool calls, because a long answer delays other calls. */
const PAGE_CHARACTERS = 512 * 1024;

/** Lists, reads and deletes stored sessions. */
export function createStoredSessions({ store, clock }: Pick<CoreParts, "store" | "clock">) {
  return {
    list: ({ limit, agents, cursor }: ListRequest): Promise<Page<ListedSession>> =>
      store.listSessions({ limit, ...(agents && { agents }), ...(cursor !== undefined && { cursor }) }),

    /** Throws `session-not-found`, also if `agents` lacks its agent, and `invalid-params` for a cursor that was not returned for this session. */
    async read(sessionId: string, request: PageRequest): Promise<SessionPage> {
      const { limit, cursor, includeCompacted, turnId, includeTurns } = request;
      const session = await store.getSession(sessionId);
      if (!session || !reaches(request, session.agent)) throw sessionNotFound(sessionId);
      const before = cursor === undefined ? session.lastSeq + 1 : placeOf(session, cursor);
      const range = { before, limit: limit + 1, characters: PAGE_CHARACTERS };
      const [summary, found] = await Promise.all([
        store.readSummary(sessionId),
        turnId === undefined
          ? store.readMessages(sessionId, { ...range, includeCompacted, includeToolCalls: true })
          : readTurnMessages(store, sessionId, turnId, range),
      ]);
      const messages = found.slice(0, limit);
      const last = messages.at(-1);
      const hasMore = found.length > limit || sumOfCharacters(messages) >= PAGE_CHARACTERS;
      const nextCursor = hasMore && last ? cursorOf(session, last) : null;
      const turns = includeTurns ? await readTurns(store, messages) : undefined;
      return { session, summary: summary?.text ?? null, messages, turns, nextCursor };
    },

    /** Deletes a session with its messages, and cancels its turns. Throws `session-not-found`, also if `agents` lacks its agent. */
    async delete(sessionId: string, agents?: readonly string[]): Promise<{ turnsCancelled: number }> {
      const deleted = await store.deleteSession(sessionId, clock.now(), agents);
      if (!deleted) throw sessionNotFound(sessionId);
      return deleted;
    },
  };
}

export function sessionNotFound(sessionId: string): GatewayError {
  return new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
}

/** The messages of a turn in a range, newest first; none for a turn of another session. */
async function readTurnMessages(
  store: Store,
  sessionId: string,
  turnId: string,
  { before, limit, characters }: { before: number; limit: number; characters: number },
): Promise<Message[]> {
  const turn = await store.getTurn(turnId);
  if (turn?.sessionId !== sessionId) return [];
  const entries = await readTurnEntries(store, turn);
  const seqs = entries.flatMap(({ seq, name }) => (name === "message.completed" ? [seq] : []));
  const messages: Message[] = [];
  for (const seq of [turn.seq - 1, ...seqs].filter((seq) => seq < before).reverse()) {
    if (messages.length === limit || sumOfCharacters(messages) >= characters) break;
    const one = { before: seq + 1, limit: 1, includeCompacted: true, includeToolCalls: true };
    const found = await store.readMessages(sessionId, one);
    messages.push(...found.filter((message) => message.turnId === turnId));
  }
  return messages;
}

/** The turns of messages, each once. */
async function readTurns(store: Store, messages: readonly Message[]): Promise<Turn[]> {
  const ids = [...new Set(messages.map(({ turnId }) => turnId))];
  const turns = await Promise.all(ids.map((turnId) => store.getTurn(turnId)));
  return turns.filter((turn) => turn !== undefined);
}

function sumOfCharacters(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + charactersOf(message), 0);
}

/** The cursor of a message. It contains the session's ordinal, so that it is not valid for a later session with the same id. */
function cursorOf({ ordinal }: Session, { seq }: Pick<Message, "seq">): string {
  return `m${ordinal.toString(36)}.${seq.toString(36)}`;
}

function placeOf(session: Session, cursor: string): number {
  const seq = Number.parseInt(/^m[0-9a-z]{1,10}\.([0-9a-z]{1,10})$/.exec(cursor)?.[1] ?? "", 36);
  if (seq > 0 && seq <= session.lastSeq && cursorOf(session, { seq }) === cursor) return seq;
  throw new GatewayError("invalid-params", "`cursor` is not a cursor of this list.");
}
