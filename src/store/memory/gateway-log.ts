import type { GatewayEntry, Store } from "#store/store.ts";
import { decodeNews, encodeNews } from "./gateway-codec.ts";
import { readTime } from "./packed.ts";
import { NO_TAIL, RecordSegments } from "./record-segments.ts";
import { NO_SEQ } from "./rows.ts";
import { SlotOrder } from "./slot-order.ts";
import { appendGateway, type State, tellGateway } from "./state.ts";

const NO_MARK = 0;

/** The gateway's stream: its newest entries, in order and without a gap. Outside the JavaScript heap, as one comes with every event. */
export class GatewayLog {
  readonly #records = new RecordSegments();
  readonly #order = new SlotOrder();
  /** The oldest that is kept, or the next to come. */
  #first = 1;

  /** Appends an entry, which gets its `seq`. */
  append(entry: GatewayEntry, keep: number): GatewayEntry {
    encodeNews(this.#records.begin(), entry);
    const seq = this.#order.push(this.#records.add(NO_TAIL, NO_MARK));
    while (seq - this.#first >= keep) this.#letGo();
    entry.seq = seq;
    return entry;
  }

  read(after: number, limit: number): { entries: GatewayEntry[]; first: number; last: number } {
    const { last } = this.#order;
    const entries: GatewayEntry[] = [];
    for (let seq = Math.max(after + 1, this.#first); seq <= last && entries.length < limit; seq++) {
      const { bytes, from } = this.#records.read(this.#order.slotOf(seq));
      entries.push(decodeNews(bytes, from, seq));
    }
    return { entries, first: this.#first, last };
  }

  forgetBefore(time: number): void {
    while (this.#first <= this.#order.last) {
      const { bytes, from } = this.#records.read(this.#order.slotOf(this.#first));
      if (readTime(bytes, from) >= time) break;
      this.#letGo();
    }
  }

  #letGo(): void {
    this.#records.delete(this.#order.slotOf(this.#first));
    this.#order.clear(this.#first++);
  }
}

export const gatewayMethods = (state: State): Pick<Store, "appendGatewayEntry" | "readGatewayEntries"> => ({
  appendGatewayEntry: async (news, { now, keep }) => {
    const entry = appendGateway(state, { seq: NO_SEQ, at: now, ...news }, keep);
    tellGateway(state);
    return entry;
  },
  readGatewayEntries: async ({ after, limit }) => state.gateway.read(after, limit),
});
