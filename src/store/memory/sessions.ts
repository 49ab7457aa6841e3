import type { CompactionRecord, OpenTurnRecord, Records, SessionRecord } from "#store/rules/records.ts";
import { Ordered } from "./ordered.ts";
import { type Scale, weighSession } from "./weights.ts";

type QueuePlace = OpenTurnRecord | CompactionRecord;
/** A session with its unfinished turns and compactions, by their places. */
type SessionRow = { record: SessionRecord; queue: QueuePlace[] };

const NOBODY: readonly QueuePlace[] = [];

export class Sessions {
  readonly #scale: Scale;
  readonly #byId = new Map<string, SessionRow>();
  readonly #byOrdinal = new Ordered<number, SessionRow>();
  readonly #byAgent = new Map<string, Ordered<number, SessionRow>>();

  constructor(scale: Scale) {
    this.#scale = scale;
  }

  get size(): number {
    return this.#byId.size;
  }

  readonly records: Records["sessions"] = {
    find: (sessionId) => this.#byId.get(sessionId)?.record,
    at: (ordinal) => this.#byOrdinal.get(ordinal)?.record,
    put: (record) => this.#put(record),
    delete: ({ session: { sessionId, agent, ordinal } }) => {
      const row = this.#byId.get(sessionId);
      if (!row) return;
      this.#scale.weigh(weighSession(row.record), 0);
      this.#byId.delete(sessionId);
      this.#byOrdinal.delete(ordinal);
      const ofAgent = this.#byAgent.get(agent);
      ofAgent?.delete(ordinal);
      if (ofAgent?.size === 0) this.#byAgent.delete(agent);
    },
    before: (ordinal, limit, agent) => {
      const rows = agent === undefined ? this.#byOrdinal : this.#byAgent.get(agent);
      return rows?.before(ordinal, limit).map(({ record }) => record) ?? [];
    },
    after: (ordinal, limit) => this.#byOrdinal.after(ordinal, limit).map(({ record }) => record),
  };

  queue(ordinal: number): readonly QueuePlace[] {
    return this.#byOrdinal.get(ordinal)?.queue ?? NOBODY;
  }

  /** Puts something in its place in its session's queue, or takes it out. */
  setPlace(ordinal: number, place: number, of: QueuePlace | undefined): void {
    const queue = this.#byOrdinal.get(ordinal)?.queue;
    if (!queue) return;
    const at = placeIn(queue, place);
    const isThere = queue[at]?.place === place;
    if (of) queue.splice(at, isThere ? 1 : 0, of);
    else if (isThere) queue.splice(at, 1);
  }

  #put(record: SessionRecord): void {
    const { sessionId, agent, ordinal } = record.session;
    const known = this.#byId.get(sessionId);
    this.#scale.weigh(known ? weighSession(known.record) : 0, weighSession(record));
    if (known) {
      known.record = record;
      return;
    }
    const row = { record, queue: [] };
    this.#byId.set(sessionId, row);
    this.#byOrdinal.set(ordinal, row);
    const ofAgent = this.#byAgent.get(agent) ?? new Ordered<number, SessionRow>();
    this.#byAgent.set(agent, ofAgent);
    ofAgent.set(ordinal, row);
  }
}

/** The first place in a queue that is not before `place`. */
const placeIn = (queue: readonly QueuePlace[], place: number): number => {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle] as QueuePlace).place < place) low = middle + 1;
    else high = middle;
  }
  return low;
};
