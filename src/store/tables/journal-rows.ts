/** Numbered entries as rows of a table: the entries that a transaction appends to a stream share a row. */
import type { GatewayStream, Stream } from "#store/rules/records.ts";
import type { Entry, GatewayEntry, ToolCall } from "#store/store.ts";

/** The gateway's stream is stored like the journal of a session. A session does not have this ordinal. */
export const GATEWAY = 0;

export type AnyEntry = Entry | GatewayEntry;
/** The tool calls of entries, by the `seq` of each. */
type Calls = { [seq: number]: ToolCall[] };

/** The text of a row. The end of a turn repeats its reply, which mostly is the text of the entry before it: that is stored once. */
export function encodeEntries(entries: readonly AnyEntry[]): string {
  return JSON.stringify(
    entries.map((entry, n) =>
      "reply" in entry && entry.reply === textOf(entries[n - 1]) ? { ...entry, reply: undefined } : entry,
    ),
  );
}

/** The same with the tool calls apart, so that they can be left out when the row is read. */
export function encodeApart(entries: readonly AnyEntry[]): { body: string; calls: string | undefined } {
  const calls: Calls = {};
  const others = entries.map((entry) => {
    if (entry.name !== "message.completed" || !entry.toolCalls) return entry;
    calls[entry.seq] = entry.toolCalls;
    return { ...entry, toolCalls: undefined };
  });
  const hasCalls = Object.keys(calls).length > 0;
  return { body: encodeEntries(others), calls: hasCalls ? JSON.stringify(calls) : undefined };
}

/** The entries of a row, from the values of its JSON. */
export function decodeEntries(entries: AnyEntry[], calls?: Calls): AnyEntry[] {
  for (const [n, entry] of entries.entries()) {
    if (entry.name === "turn.completed" || entry.name === "turn.cancelled") {
      entry.reply ??= textOf(entries[n - 1]) ?? "";
    }
    if (calls && entry.name === "message.completed") entry.toolCalls = calls[entry.seq];
  }
  return entries;
}

function textOf(entry: AnyEntry | undefined): string | undefined {
  return entry?.name === "message.completed" ? entry.text : undefined;
}

/** The number of dropped entries that may still be stored before their rows are deleted. */
const DELETED_TOGETHER = 1_000;

/** The range of the entries that the gateway's stream keeps. */
export type GatewayEnds = { first: number; last: number };

type Journals = {
  stream<E extends AnyEntry>(session: number): Stream<E>;
  /** Deletes the rows of which all entries are before `seq`. */
  dropRows(session: number, seq: number): void;
};

/** The gateway's stream. Nearly each new entry removes the oldest one, so rows are deleted many at a time. */
export function gatewayStream(journals: Journals, ends: GatewayEnds): GatewayStream {
  const rows = journals.stream<GatewayEntry>(GATEWAY);
  return {
    get first() {
      return ends.first;
    },
    get last() {
      return ends.last;
    },
    append: (entries) => {
      rows.append(entries);
      ends.last += entries.length;
    },
    after: (seq, limit) => rows.after(Math.max(seq, ends.first - 1), limit),
    before: (seq, limit) => rows.before(seq, limit).filter((entry) => entry.seq >= ends.first),
    eraseBefore: (seq) => {
      const before = ends.first;
      ends.first = Math.max(before, Math.min(seq, ends.last + 1));
      const isRound = Math.floor(before / DELETED_TOGETHER) < Math.floor(ends.first / DELETED_TOGETHER);
      if (isRound || ends.first > ends.last) journals.dropRows(GATEWAY, ends.first);
    },
  };
}
