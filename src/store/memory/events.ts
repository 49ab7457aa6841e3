import { Ordered } from "#store/live/ordered.ts";
import { type Scale, weighEvent } from "#store/live/weights.ts";
import type { EventRecord, Records } from "#store/rules/records.ts";

export class Events {
  readonly #scale: Scale;
  readonly #byId = new Map<string, EventRecord>();
  readonly #byOrdinal = new Ordered<number, EventRecord>();
  /** By agent, those that wait for a turn. */
  readonly #free = new Map<string, Ordered<number, EventRecord>>();
  /** In the order of their ends. */
  readonly #ended = new Map<string, EventRecord>();

  constructor(scale: Scale) {
    this.#scale = scale;
  }

  readonly records: Records["events"] = {
    find: (eventId) => this.#byId.get(eventId),
    put: (record) => {
      this.#remove(this.#byId.get(record.event.eventId));
      this.#add(record);
    },
    delete: ({ event: { eventId } }) => {
      this.#remove(this.#byId.get(eventId));
      this.#byId.delete(eventId);
    },
    free: (agent, after, limit) => this.#free.get(agent)?.after(after, limit) ?? [],
    before: (ordinal, limit) => this.#byOrdinal.before(ordinal, limit),
    endedBefore: (time, limit) => {
      const found: EventRecord[] = [];
      for (const record of this.#ended.values()) {
        if (found.length >= limit || (record.event.endedAt ?? Infinity) >= time) break;
        found.push(record);
      }
      return found;
    },
  };

  #add(record: EventRecord): void {
    const { eventId, agent, ordinal, status } = record.event;
    this.#scale.weigh(0, weighEvent(record));
    this.#byId.set(eventId, record);
    this.#byOrdinal.set(ordinal, record);
    if (status !== "queued") this.#ended.set(eventId, record);
    else if (!record.isTaken) this.#freeOf(agent).set(ordinal, record);
  }

  #remove(record: EventRecord | undefined): void {
    if (!record) return;
    const { eventId, agent, ordinal, status } = record.event;
    this.#scale.weigh(weighEvent(record), 0);
    this.#byOrdinal.delete(ordinal);
    if (status !== "queued") this.#ended.delete(eventId);
    else if (!record.isTaken) this.#freeOf(agent).delete(ordinal);
  }

  #freeOf(agent: string): Ordered<number, EventRecord> {
    const free = this.#free.get(agent) ?? new Ordered<number, EventRecord>();
    this.#free.set(agent, free);
    return free;
  }
}
