import type { GatewayEntry, GatewayNews } from "#store/store.ts";
import type { Records, Rule } from "./records.ts";

/** Appends to the gateway's stream, which keeps its newest `keep` entries. */
export function appendNews(records: Records, news: readonly GatewayNews[], at: number, keep: number): GatewayEntry[] {
  const { gateway } = records;
  const first = gateway.last + 1;
  const entries = news.map((one, n): GatewayEntry => ({ seq: first + n, at, ...one }));
  if (entries.length === 0) return entries;
  gateway.append(entries);
  if (gateway.last - gateway.first >= keep) gateway.eraseBefore(gateway.last - keep + 1);
  records.notify({ kind: "gateway", entries });
  return entries;
}

export const appendGatewayEntry: Rule<"appendGatewayEntry"> = (records, news, { now, keep }) =>
  appendNews(records, [news], now, keep)[0] as GatewayEntry;

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
