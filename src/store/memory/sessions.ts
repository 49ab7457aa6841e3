import { Ordered } from "#store/live/ordered.ts";
import { type Scale, weighSession } from "#store/live/weights.ts";
import type { Records, SessionRecord } from "#store/rules/records.ts";

/** A session, whose record is replaced with each change. */
type SessionRow = { record: SessionRecord };

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

  #put(record: SessionRecord): void {
    const { sessionId, agent, ordinal } = record.session;
    const known = this.#byId.get(sessionId);
    this.#scale.weigh(known ? weighSession(known.record) : 0, weighSession(record));
    if (known) {
      known.record = record;
      return;
    }
    const row = { record };
    this.#byId.set(sessionId, row);
    this.#byOrdinal.set(ordinal, row);
    const ofAgent = this.#byAgent.get(agent) ?? new Ordered<number, SessionRow>();
    this.#byAgent.set(agent, ofAgent);
    ofAgent.set(ordinal, row);
  }
}
