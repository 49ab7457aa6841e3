import type { StoreWatcher } from "#store/store.ts";
import type { News } from "./records.ts";

/** Tells a watcher the news of a rule, once its changes are kept. */
export const notifyWatcher = (watcher: StoreWatcher, news: News): void => {
  if (news.kind === "entries") watcher.entries(news.session, news.entries);
  else if (news.kind === "deleted") watcher.sessionDeleted(news.session, news.end);
  else if (news.kind === "gateway") watcher.gatewayEntries(news.entries);
  else if (news.kind === "cancel") watcher.cancel(news.turnId);
  else if (news.kind === "compaction") watcher.compaction(news.compactionId);
  else watcher[news.kind]();
};
