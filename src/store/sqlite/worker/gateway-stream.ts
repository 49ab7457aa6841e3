import type { Stream } from "#store/rules/records.ts";
import type { GatewayEntry } from "#store/store.ts";
import { GATEWAY, type Journals } from "./journal.ts";

/** So many entries that are not kept any more may still be in the file. */
const GONE_TOGETHER = 1_000;

/** Which entries of the gateway's stream are kept. */
export type GatewayEnds = { first: number; last: number; firstInFile: number };

/** The gateway's stream, whose oldest entries go with nearly each that comes: their rows are deleted many at a time. */
export const gatewayStream = (journals: Journals, ends: GatewayEnds): Stream<GatewayEntry> => {
  const rows = journals.of<GatewayEntry>(GATEWAY);
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
      ends.first = Math.max(ends.first, Math.min(seq, ends.last + 1));
      if (ends.first - ends.firstInFile < GONE_TOGETHER && ends.first <= ends.last) return;
      ends.firstInFile = ends.first;
      journals.dropRows(GATEWAY, ends.first);
    },
  };
};
