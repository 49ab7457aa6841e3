import type { Entry, MoreUsage, Role } from "#store/store.ts";
import { usageOf } from "#store/views.ts";

const KINDS = [
  "message.created",
  "message.completed",
  "turn.queued",
  "turn.started",
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "session.compacted",
] as const satisfies readonly Entry["name"][];

/** Stands for what the entry before it in the same row has: its time, its turn, or its text as the reply. */
const SAME = 0;

type Packed = readonly [kind: number, at: number, turnId: string | typeof SAME, ...rest: unknown[]];

/** A text of so many characters stands as it is behind the JSON, where its length is left: to escape it and back costs more than all else. */
const LONG = 512;

/** JSON escapes what SQLite's text could not hold; a text with any of that stays in it. */
const isLong = (value: unknown): value is string =>
  typeof value === "string" && value.length >= LONG && !value.includes("\0") && value.isWellFormed();

const pack = (entries: readonly Packed[]): string => {
  let texts = "";
  const leaveLength = (value: unknown): unknown => {
    if (!isLong(value)) return value;
    texts += value;
    return [value.length];
  };
  const json = JSON.stringify(entries.map((entry) => entry.map(leaveLength)));
  return texts === "" ? json : `${json}\n${texts}`;
};

const unpack = (body: string): Packed[] => {
  // In JSON itself it is escaped.
  let at = body.indexOf("\n");
  if (at === -1) return JSON.parse(body) as Packed[];
  const entries = JSON.parse(body.slice(0, at++)) as unknown[][];
  for (const entry of entries) {
    for (const [n, value] of entry.entries()) {
      if (!Array.isArray(value)) continue;
      const length = value[0] as number;
      entry[n] = body.slice(at, at + length);
      at += length;
    }
  }
  return entries as unknown as Packed[];
};

/** Entries that follow one another, as the body of one row: a turn begins at `begunSeq`. */
export const encodeEntries = (entries: readonly Entry[], begunSeq = 0): string =>
  pack(
    entries.map((entry, n) => {
      const before = entries[n - 1];
      const at = entry.at === before?.at ? SAME : entry.at;
      const turnId = entry.turnId === before?.turnId ? SAME : entry.turnId;
      const begun = entry.seq === begunSeq ? [1] : [];
      return [KINDS.indexOf(entry.name), at, turnId, ...restOf(entry, before), ...begun];
    }),
  );

const restOf = (entry: Entry, before: Entry | undefined): unknown[] => {
  switch (entry.name) {
    case "message.created":
      return [entry.messageId, entry.role, entry.text, entry.outside ? 1 : 0, entry.context ?? null];
    case "message.completed":
      return [entry.messageId, entry.text];
    case "turn.queued":
      return [];
    case "turn.started":
      return [entry.attempt];
    case "turn.failed":
      return [entry.usage.input, entry.usage.output, entry.error.name, entry.error.detail ?? null, ...moreOf(entry)];
    case "session.compacted":
      return [entry.before.messages, entry.before.tokens, entry.after.messages, entry.after.tokens];
    default: {
      const isSame = before?.name === "message.completed" && before.text === entry.reply;
      return [entry.usage.input, entry.usage.output, isSame ? SAME : entry.reply, ...moreOf(entry)];
    }
  }
};

type End = Extract<Entry, { usage: unknown }>;

/** Nothing for most. In an object: an array among the values stands for a long text. */
const moreOf = ({ usage: { more }, model }: End): [] | [Partial<More>] =>
  more || model !== undefined ? [{ more, model }] : [];
type More = { more: MoreUsage; model: string };

/** The entries of a row, of which the last has `lastSeq`. */
export const decodeEntries = (body: string, lastSeq: number): Entry[] => {
  const packed = unpack(body);
  const entries: Entry[] = [];
  let seq = lastSeq - packed.length;
  for (const one of packed) entries.push(decodeEntry(one, ++seq, entries.at(-1)));
  return entries;
};

const decodeEntry = ([kind, time, turn, ...rest]: Packed, seq: number, before: Entry | undefined): Entry => {
  const at = time === SAME && before ? before.at : time;
  const turnId = turn === SAME ? (before?.turnId ?? "") : turn;
  const base = { seq, at, turnId };
  const name = KINDS[kind] as Entry["name"];
  switch (name) {
    case "message.created": {
      const [messageId, role, text, outside, context] = rest as [string, Role, string, number, string | null];
      return { ...base, name, messageId, role, text, outside: outside === 1, context: context ?? undefined };
    }
    case "message.completed": {
      const [messageId, text] = rest as [string, string];
      return { ...base, name, messageId, text };
    }
    case "turn.queued":
      return { ...base, name };
    case "turn.started":
      return { ...base, name, attempt: rest[0] as number };
    case "turn.failed": {
      const [input, output, error, detail, of] = rest as [number, number, string, string | null, Partial<More>?];
      const named = { name: error, detail: detail ?? undefined } as Extract<Entry, { name: "turn.failed" }>["error"];
      return { ...base, name, usage: usageOf(input, output, of?.more), error: named, model: of?.model };
    }
    case "session.compacted": {
      const [messages, tokens, messagesAfter, tokensAfter] = rest as [number, number, number, number];
      return { ...base, name, before: { messages, tokens }, after: { messages: messagesAfter, tokens: tokensAfter } };
    }
    default: {
      const [input, output, reply, of] = rest as [number, number, string | typeof SAME, Partial<More>?];
      const text = before?.name === "message.completed" ? before.text : "";
      const usage = usageOf(input, output, of?.more);
      return { ...base, name, usage, reply: reply === SAME ? text : reply, model: of?.model };
    }
  }
};

/** The body of a row without its entries before `seq`. */
export const cutEntries = (body: string, lastSeq: number, seq: number): string => {
  const packed = unpack(body);
  const from = seq - (lastSeq - packed.length) - 1;
  const first = decodeEntries(body, lastSeq)[from];
  if (!first) return "[]";
  const [kind, , , ...rest] = packed[from] as Packed;
  if (first.name === "turn.completed" || first.name === "turn.cancelled") rest[2] = first.reply;
  return pack([[kind, first.at, first.turnId, ...rest], ...packed.slice(from + 1)]);
};

/** The turns that begin in a row. */
export const begunIn = (body: string, lastSeq: number): { turnId: string; seq: number }[] => {
  const begun: { turnId: string; seq: number }[] = [];
  const packed = unpack(body);
  let turnId = "";
  for (const [n, [kind, , turn, isFirst]] of packed.entries()) {
    if (turn !== SAME) turnId = turn;
    if (KINDS[kind] === "turn.queued" && isFirst === 1) begun.push({ turnId, seq: lastSeq - packed.length + n + 1 });
  }
  return begun;
};
