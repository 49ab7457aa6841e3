/** Numbered entries as rows of a table: the entries that a transaction appends to a stream share a row. */
import type { GatewayStream, Stream } from "#store/rules/streams.ts";
import type { Entry, GatewayEntry, ToolCall } from "#store/store.ts";

/** The gateway's stream is stored like the journal of a session. This is not the ordinal of a session. */
export const GATEWAY = 0;

export type AnyEntry = Entry | GatewayEntry;
/** The tool calls of entries, by the `seq` of each. */
type Calls = { [seq: number]: ToolCall[] };

/** The text of a row. The end of a turn has the reply, which is usually the text of the entry before it. This text is stored only once. */
export function encodeEntries(entries: readonly AnyEntry[]): string {
  return JSON.stringify(
    entries.map((entry, n) =>
      "reply" in entry && entry.reply === textOf(entries[n - 1]) ? { ...entry, reply: undefined } : entry,
    ),
  );
}

/** Encodes the tool calls separately, so that a read can leave them out. */
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

/** The number of dropped entries after which their rows are deleted. */
const DELETED_TOGETHER = 1_000;

/** The range of the stored entries of the gateway's stream. */
export type GatewayEnds = { first: number; last: number };

type Journals = {
  stream<E extends AnyEntry>(session: number): Stream<E>;
  /** Deletes the rows whose entries are all before `seq`. */
  dropRows(session: number, seq: number): void;
};

/** The gateway's stream. Nearly every new entry removes the oldest one, so rows are deleted in batches. */
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
    eraseBefore: (seq) => {
      const before = ends.first;
      ends.first = Math.max(before, Math.min(seq, ends.last + 1));
      const isRound = Math.floor(before / DELETED_TOGETHER) < Math.floor(ends.first / DELETED_TOGETHER);
      if (isRound || ends.first > ends.last) journals.dropRows(GATEWAY, ends.first);
    },
  };
}
