import type { BackendMessage } from "#backends/backend.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { ClaimedTurn, Message, Store, Summary } from "#store/store.ts";
import { earlierOf, hasInstructions } from "./earlier-messages.ts";

const PAGE = 500;
/** The most characters of one page. Other calls run between two pages. */
const PAGE_CHARACTERS = 262_144;
/** The `seq` of a session's first turn. The message before it has 1. */
const FIRST_TURN = 2;
/** The most characters of a conversation. If a conversation without compaction is longer, its oldest messages are left out. */
const HISTORY_CHARACTERS = 4 * 1024 * 1024;

/** The conversation before a turn's message, oldest first: the summary of the compacted part, then the messages and replies. Only the last instructions are included. */
export async function readHistory(store: Store, claimed: ClaimedTurn): Promise<readonly BackendMessage[]> {
  const { turn, replySeq, message } = claimed;
  if (turn.seq <= FIRST_TURN) return earlierOf(message);
  const [summary, messages] = await Promise.all([
    store.readSummary(turn.sessionId),
    readContext(store, turn.sessionId, { before: replySeq, characters: HISTORY_CHARACTERS }),
  ]);
  const before = inTurnOrder(messages).filter(({ turnId, place }) => place < turn.seq && turnId !== turn.turnId);
  const last = hasInstructions(message) ? undefined : before.findLast(hasInstructions);
  const history = before.flatMap((one) => (one === last ? toBackend(one) : withoutInstructions(toBackend(one))));
  if (summary) history.unshift(summaryMessage(summary));
  history.push(...earlierOf(message));
  return history;
}

function withoutInstructions(messages: BackendMessage[]): BackendMessage[] {
  return messages.length === 1 ? messages : messages.filter(({ instructions }) => !instructions);
}

/** Converts a message for a backend: the earlier messages that were sent with it, then the message itself. */
export function toBackend(message: Message): BackendMessage[] {
  const { role, text, outside } = message;
  return [...earlierOf(message), { role, text, outside }];
}

export function summaryMessage({ text, outside }: Summary): BackendMessage {
  return {
    role: "system",
    text,
    outside,
  };
}

/** The messages of a session that are not compacted, newest first. */
export async function readContext(
  store: Store,
  sessionId: string,
  { before = Infinity, characters = Infinity }: { before?: number; characters?: number } = {},
): Promise<Message[]> {
  const messages: Message[] = [];
  let left = characters;
  for (let next = before; ; ) {
    const page = await store.readMessages(sessionId, { before: next, limit: PAGE, characters: PAGE_CHARACTERS });
    let more = PAGE_CHARACTERS;
    for (const message of page) {
      left -= message.text.length;
      more -= message.text.length;
      if (left < 0) return messages;
      messages.push(message);
      next = message.seq;
    }
    if (page.length < PAGE && more > 0) return messages;
    await yieldToOthers();
  }
}

/**
 * Sorts messages by turn: oldest first, each followed by its reply. (In the journal, a message that was sent while a turn was running precedes
 * the reply of that turn.) `place` is the `seq` of the turn's message, and 0 for a reply whose message was compacted.
 */
export function inTurnOrder(messages: readonly Message[]): (Message & { place: number })[] {
  const placeOf = new Map<string, number>();
  for (const { role, turnId, seq } of messages) if (role !== "assistant") placeOf.set(turnId, seq);
  return messages
    .map((message) => Object.assign({}, message, { place: placeOf.get(message.turnId) ?? 0 }))
    .sort((a, b) => a.place - b.place || a.seq - b.seq);
}
