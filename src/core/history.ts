import type { BackendMessage } from "#backends/backend.ts";
import type { ClaimedTurn, Store } from "#store/store.ts";

const HISTORY_MESSAGES = 200;

/**
 * The conversation before a turn's message, oldest first, each message followed by its reply. The journal alone has another order:
 * messages that were sent while a turn ran stand before the reply of that turn.
 */
export const readHistory = async (store: Store, { turn, replySeq }: ClaimedTurn): Promise<BackendMessage[]> => {
  const messages = await store.readMessages(turn.sessionId, { before: replySeq, limit: HISTORY_MESSAGES });
  const placeOf = new Map<string, number>();
  for (const { role, turnId, seq } of messages) if (role !== "assistant") placeOf.set(turnId, seq);
  return messages
    .map((message) => ({ ...message, place: placeOf.get(message.turnId) ?? 0 }))
    .filter(({ place, turnId }) => place < turn.seq && turnId !== turn.turnId)
    .sort((a, b) => a.place - b.place || a.seq - b.seq)
    .map(({ role, text, outside }) => ({ role, text, outside }));
};
