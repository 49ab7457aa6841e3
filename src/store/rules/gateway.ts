import type { GatewayEntry } from "#store/store.ts";
import { NO_SEQ } from "./journal.ts";
import { noteEntries } from "./notifications.ts";
import type { Records, Rule } from "./records.ts";

/**
 * Appends new entries to the gateway's stream, which keeps its newest `keep` entries, and gives them their `seq`. Entries that are events are sent to
 * endpoints, too.
 */
export function appendNews(records: Records, entries: readonly GatewayEntry[], keep: number): void {
  if (entries.length === 0) return;
  const { gateway } = records;
  let { last } = gateway;
  for (const entry of entries) entry.seq = ++last;
  gateway.append(entries);
  if (gateway.last - gateway.first >= keep) gateway.eraseBefore(gateway.last - keep + 1);
  records.notify({ kind: "gateway", entries });
  noteEntries(records, entries);
}

export const appendGatewayEntry: Rule<"appendGatewayEntry"> = (records, news, { now, keep }) => {
  const entry: GatewayEntry = { seq: NO_SEQ, at: now, ...news };
  appendNews(records, [entry], keep);
  return entry;
};

export const readGatewayEntries: Rule<"readGatewayEntries"> = ({ gateway }, { after, limit }) => ({
  entries: gateway.after(after, limit),
  first: gateway.first,
  last: gateway.last,
});

const AT_ONCE = 500;

/** Erases the entries that are older than `time`, some hundred at once. */
export function forgetNewsBefore({ gateway }: Records, time: number): void {
  const [first] = gateway.after(0, 1);
  // Most sweeps find nothing to erase.
  if (first === undefined || first.at >= time) return;
  const oldest = gateway.after(0, AT_ONCE);
  const retained = oldest.find(({ at }) => at >= time);
  gateway.eraseBefore(retained?.seq ?? (oldest.at(-1)?.seq ?? 0) + 1);
}
