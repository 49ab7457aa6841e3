import type { CompactionResult, Entry, GatewayEntry, SessionRef, StoreWatcher, WorkKind } from "#store/store.ts";

/** News for the watchers. They are notified in this order after the commit. */
export type News =
  /** `deliveryId` is the delivery of a turn that starts or changes its status with these entries. */
  | { kind: "entries"; session: SessionRef; entries: readonly Entry[]; deliveryId: string | undefined }
  | { kind: "deleted"; session: SessionRef; end: { seq: number; at: number } }
  | { kind: "gateway"; entries: readonly GatewayEntry[] }
  | { kind: "cancel"; turnId: string }
  | { kind: "compacted"; turnId: string; result: CompactionResult }
  /** A change of a delivery whose turn has no new entries. */
  | { kind: "recorded" | "outcome"; deliveryId: string }
  /** There is work now, or in `dueInMs`. */
  | { kind: "work"; of: WorkKind; dueInMs?: number };

type DeliveryNews = Extract<News, { deliveryId: unknown }>;

/** A delivery is recorded with the message that begins its turn. */
export function deliveryChange(news: DeliveryNews): "recorded" | "outcome" {
  if (news.kind !== "entries") return news.kind;
  const [first] = news.entries;
  return first?.name === "message.created" && first.role === "user" ? "recorded" : "outcome";
}

/** Notifies a watcher of the news of a rule. Called after the commit. */
export function notifyWatcher(watcher: StoreWatcher, news: News): void {
  if ("deliveryId" in news && news.deliveryId !== undefined) watcher.delivery?.(news.deliveryId, deliveryChange(news));
  if (news.kind === "entries") watcher.entries(news.session, news.entries);
  else if (news.kind === "deleted") watcher.sessionDeleted(news.session, news.end);
  else if (news.kind === "gateway") watcher.gatewayEntries(news.entries);
  else if (news.kind === "cancel") watcher.cancel(news.turnId);
  else if (news.kind === "compacted") watcher.compacted(news.turnId, news.result);
  else if (news.kind === "work") watcher.work(news.of, news.dueInMs);
}
