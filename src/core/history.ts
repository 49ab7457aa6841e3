import type { BackendMessage } from "#backends/backend.ts";
import type { ClaimedTurn, Message, Store, Summary } from "#store/store.ts";
import { earlierOf } from "./earlier.ts";

const PAGE = 500;
/** A turn's place is behind its message: before this one nothing was said in its session. */
const FIRST_TURN = 2;
/** A conversation that grew past this without being compacted begins with what its newest messages leave room for. */
const HISTORY_CHARACTERS = 4 * 1024 * 1024;

/** The conversation before a turn's message, oldest first: the summary of what was compacted, then each message followed by its reply. */
export const readHistory = async (
  store: Store,
  { turn, replySeq, message }: ClaimedTurn,
): Promise<BackendMessage[]> => {
  if (turn.seq <= FIRST_TURN) return [...earlierOf(message)];
  const [summary, messages] = await Promise.all([
    store.readSummary(turn.sessionId),
    readContext(store, turn.sessionId, { before: replySeq, characters: HISTORY_CHARACTERS }),
  ]);
  const said = inTurnOrder(messages)
    .filter(({ turnId, place }) => place < turn.seq && turnId !== turn.turnId)
    .flatMap(toBackend);
  if (summary) said.unshift(summaryMessage(summary));
  said.push(...earlierOf(message));
  return said;
};

/** A message as backends are told it, with what was said before it, where that began a session. */
export const toBackend = (message: Message): BackendMessage[] => {
  const { role, text, outside } = message;
  return [...earlierOf(message), { role, text, outside }];
};

export const summaryMessage = ({ text, outside }: Summary): BackendMessage => ({
  role: "system",
  text,
  outside,
});

/** The messages of a session that are not compacted, newest first. */
export const readContext = async (
  store: Store,
  sessionId: string,
  { before = Infinity, characters = Infinity }: { before?: number; characters?: number } = {},
): Promise<Message[]> => {
  const messages: Message[] = [];
  let left = characters;
  for (let next = before; ; ) {
    const page = await store.readMessages(sessionId, { before: next, limit: PAGE });
    for (const message of page) {
      left -= message.text.length;
      if (left < 0) return messages;
      messages.push(message);
      next = message.seq;
    }
    if (page.length < PAGE) return messages;
  }
};

/**
 * Oldest first, each message followed by its reply. The journal alone has another order: messages that were sent while a turn ran
 * stand before the reply of that turn. `place` is the same for all of a turn, and 0 for a reply whose message was compacted.
 */
export const inTurnOrder = (messages: readonly Message[]): (Message & { place: number })[] => {
  const placeOf = new Map<string, number>();
  for (const { role, turnId, seq } of messages) if (role !== "assistant") placeOf.set(turnId, seq);
  return messages
    .map((message) => ({ ...message, place: placeOf.get(message.turnId) ?? 0 }))
    .sort((a, b) => a.place - b.place || a.seq - b.seq);
};
