import type { GatewayEntry, GatewayNews, Store } from "#store/store.ts";
import type { State } from "./state.ts";

/** The gateway's stream: its newest entries, in order and without a gap, so that a `seq` is an index. */
export class GatewayLog {
  #entries: GatewayEntry[] = [];
  /** Entries before it have been let go. */
  #head = 0;
  #last = 0;

  append(news: GatewayNews, { now, keep }: { now: number; keep: number }): GatewayEntry {
    const entry = { seq: ++this.#last, at: now, ...news };
    this.#entries.push(entry);
    this.#letGo(this.#entries.length - keep);
    return entry;
  }

  read(after: number, limit: number): { entries: GatewayEntry[]; first: number; last: number } {
    const first = this.#last - (this.#entries.length - this.#head) + 1;
    const from = this.#head + Math.max(after + 1 - first, 0);
    const entries = limit > 0 && after < this.#last ? this.#entries.slice(from, from + limit) : [];
    return { entries, first, last: this.#last };
  }

  forgetBefore(time: number): void {
    let at = this.#head;
    while ((this.#entries[at]?.at ?? Infinity) < time) at++;
    this.#letGo(at);
  }

  /** All before an index. */
  #letGo(to: number): void {
    if (to <= this.#head) return;
    this.#head = to;
    if (to < 1024 && to < this.#entries.length) return;
    this.#entries = this.#entries.slice(to);
    this.#head = 0;
  }
}

export const gatewayMethods = (state: State): Pick<Store, "appendGatewayEntry" | "readGatewayEntries"> => ({
  appendGatewayEntry: async (news, append) => {
    const entry = state.gateway.append(news, append);
    for (const watcher of state.watchers) watcher.gatewayEntries([entry]);
    return entry;
  },
  readGatewayEntries: async ({ after, limit }) => state.gateway.read(after, limit),
});
