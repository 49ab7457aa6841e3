import type { Entry, GatewayEntry } from "#store/store.ts";

/** Numbered entries, of which the oldest may have been erased. */
export interface Stream<E extends { seq: number }> {
  append(entries: readonly E[]): void;
  /** The entries after `seq`, in order. */
  after(seq: number, limit: number): E[];
  /** The entries before `seq`, newest first. An engine may leave out tool calls, unless they are asked for. */
  before(seq: number, limit: number, withToolCalls?: boolean): E[];
}

/** The entries of a session. The journal of a deleted session remains until all its entries are erased. */
export interface Journal extends Stream<Entry> {
  /** Erases the given entries, which must be the oldest ones. */
  erase(oldest: readonly Entry[]): void;
}

/** The gateway's own entries. */
export interface GatewayStream extends Pick<Stream<GatewayEntry>, "append" | "after"> {
  /** The `seq` of the oldest stored entry. If none is stored, the `seq` of the next entry. */
  readonly first: number;
  /** The `seq` of the last appended entry, even if it is erased. */
  readonly last: number;
  /** Erases all entries before `seq`. */
  eraseBefore(seq: number): void;
}
