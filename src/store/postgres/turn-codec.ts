import type { ErrorName } from "#kit/errors.ts";
import type { Claim, ClaimedTurn, Entry, Message, Role, SessionSize, Surface, Turn, TurnStatus } from "#store/store.ts";
import { readOptional, readText } from "./texts.ts";
import { type MoreRow, readUsage } from "./usage.ts";

/** A row of `turns`, as SQL's row_to_json gives it. */
export type TurnRow = {
  turn_id: string;
  session_id: string;
  agent: string;
  surface: Surface;
  caller: string;
  status: TurnStatus;
  attempt: number;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  model: string | null;
  skill_ids: string[];
  message_id: string;
  seq: number;
  error: ErrorName | null;
  detail: string | null;
  input: number | null;
  output: number | null;
  more: MoreRow | null;
  delivery_id: string | null;
  node: string | null;
  reply_message_id: string | null;
  spent_ms: number;
  hops: number | null;
};
export type FoundTurn = { row: TurnRow; reply: string | null };

export const readTurn = ({ row, reply }: FoundTurn): Turn => ({
  turnId: row.turn_id,
  sessionId: readText(row.session_id),
  agent: row.agent,
  surface: row.surface,
  caller: readText(row.caller),
  status: row.status,
  attempt: row.attempt,
  createdAt: row.created_at,
  startedAt: row.started_at ?? undefined,
  endedAt: row.ended_at ?? undefined,
  model: readOptional(row.model),
  skillIds: row.skill_ids.map(readText),
  messageId: row.message_id,
  seq: row.seq,
  reply: readOptional(reply),
  error: row.error ? { name: row.error, detail: readOptional(row.detail) } : undefined,
  usage: row.input === null ? undefined : readUsage(row.input, row.output ?? 0, row.more),
  deliveryId: readOptional(row.delivery_id),
});

/** A claimed turn, as the function that claims tells it. */
export type ClaimedRow = {
  turn: FoundTurn;
  replySeq: number;
  text: string;
  outside: boolean;
  context: string | null;
};

export const readClaimed = ({ turn, replySeq, text, outside, context }: ClaimedRow): ClaimedTurn => {
  const { row } = turn;
  const read = readTurn(turn);
  const claim: Claim = { turnId: read.turnId, sessionId: read.sessionId, node: row.node ?? "", fence: row.attempt };
  const message = { text: readText(text), outside, context: readOptional(context) };
  const { reply_message_id: replyMessageId, spent_ms: spentMs, hops } = row;
  return {
    ...{ claim, turn: read, message, replyMessageId: replyMessageId ?? "", replySeq, spentMs, hops: hops ?? 0 },
  };
};

/** A row of `entries`, as `entry_json` gives it. */
export type EntryRow = [
  seq: number,
  at: number,
  turnId: string,
  name: Entry["name"],
  messageId: string | null,
  role: Role | null,
  text: string | null,
  outside: boolean | null,
  context: string | null,
  attempt: number | null,
  input: number | null,
  output: number | null,
  error: ErrorName | null,
  detail: string | null,
  sizes: [SessionSize, SessionSize] | null,
  used: [more: MoreRow | null, model: string | null] | null,
];

export const readEntries = (rows: readonly EntryRow[]): Entry[] => {
  let text = "";
  return rows.map((row) => {
    // The reply of a turn that has ended is told by the entry before its end.
    text = readOptional(row[6]) ?? (row[4] === null ? "" : text);
    return readEntry(row, text);
  });
};

const readEntry = (row: EntryRow, text: string): Entry => {
  const [seq, at, turnId, name, messageId, role, , outside, context, attempt, input, output, ...more] = row;
  const [error, detail, sizes, used] = more;
  const of = { seq, at, turnId };
  const end = { usage: readUsage(input ?? 0, output ?? 0, used?.[0] ?? null), model: readOptional(used?.[1] ?? null) };
  switch (name) {
    case "message.created": {
      const message = { messageId: messageId ?? "", role: role ?? "user", text, outside: outside ?? false };
      return { ...of, name, ...message, context: readOptional(context) };
    }
    case "message.completed":
      return { ...of, name, messageId: messageId ?? "", text };
    case "turn.queued":
      return { ...of, name };
    case "turn.started":
      return { ...of, name, attempt: attempt ?? 1 };
    case "turn.failed":
      return { ...of, name, ...end, error: { name: error ?? "internal", detail: readOptional(detail) } };
    case "session.compacted": {
      const [before, after] = sizes ?? [NOTHING, NOTHING];
      return { ...of, name, before, after };
    }
    default:
      return { ...of, name, ...end, reply: text };
  }
};

const NOTHING: SessionSize = { messages: 0, tokens: 0 };

/** A row of `entries` that holds a message's whole text. */
export type MessageRow = {
  seq: number;
  at: number;
  turn_id: string;
  name: Entry["name"];
  message_id: string;
  role: Role | null;
  text: string;
  outside: boolean | null;
  context: string | null;
  compacted: boolean;
};

export const readMessage = (row: MessageRow): Message => ({
  messageId: row.message_id,
  role: row.role ?? "assistant",
  text: readText(row.text),
  turnId: row.turn_id,
  seq: row.seq,
  createdAt: row.at,
  outside: row.outside ?? false,
  context: readOptional(row.context),
  compacted: row.compacted,
});
