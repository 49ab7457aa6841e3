import { countsOf } from "#store/rules/agents.ts";
import type { AgentCounts, Entry } from "#store/store.ts";
import { type GatewayEnds, gatewayStream } from "#store/tables/journal-rows.ts";
import { AGENTS, BEATS, COUNTS } from "#store/tables/layouts.ts";
import { newState, type State, TableRecords } from "#store/tables/table-records.ts";
import { bytesOf, freeBytesOf } from "../text.ts";
import type { Database } from "./database.ts";
import { Journals } from "./journal.ts";
import { liveRows } from "./live-rows.ts";
import { StoredTable } from "./table.ts";

/** The number of rows that a sweep looks at to find sessions that may go. */
const ROWS_A_SCAN = 100;
/** An agent's counts are told from these. */
const OF_AGENTS = new Set([AGENTS, COUNTS, BEATS].map(({ table }) => table));

/**
 * The records of a SQLite store. Unfinished and recently used records are in memory, and others are read when they are needed.
 * `flush` writes the changes. After a batch that was rolled back, a new object takes the place of this one.
 */
export class SqliteRecords extends TableRecords {
  readonly #written: readonly { flush(): void }[];
  readonly #held: readonly { trim(): void }[];
  readonly #changedAgents: Set<string>;

  constructor(db: Database) {
    const changedAgents = new Set<string>();
    const state = stateRow(db);
    const { bytes } = state.state;
    const live = liveRows(db, (kind, id) => {
      if (OF_AGENTS.has(kind)) changedAgents.add(id);
    });
    const journals = new Journals(db, state.state);
    const tables: { flush(): void; trim(): void }[] = [];
    super({
      state: state.state,
      table: (layout, changed) => {
        const table = new StoredTable(db, layout, changed);
        tables.push(table);
        return table;
      },
      live: (layout, changed) => live.table(layout, changed),
      journal: (ordinal) => journals.of<Entry>(ordinal),
      gateway: gatewayStream(journals, state.state.gateway),
    });
    // Loading a record adds nothing to the kept bytes.
    state.state.bytes = bytes;
    this.#changedAgents = changedAgents;
    this.#held = tables;
    this.#written = [...tables, live, journals, state];
    this.#readSessions(db);
  }

  /** How the agents are of which something has changed since the last call. */
  takeChangedAgents(): [agent: string, counts: AgentCounts][] {
    const changed = [...this.#changedAgents].map((agent): [string, AgentCounts] => [agent, countsOf(this, agent)]);
    this.#changedAgents.clear();
    return changed;
  }

  /** True if a turn can be claimed, now or after its delay. */
  hasWork(): boolean {
    return this.turns.readyAgents().length > 0 || this.turns.nextDueAt() !== undefined;
  }

  /** Writes all changes. */
  flush(): void {
    for (const one of this.#written) one.flush();
  }

  /** Drops records that are held only because they were used. */
  trim(): void {
    for (const table of this.#held) table.trim();
  }

  /** A sweep looks at two columns of most sessions, and not at the whole. */
  #readSessions(db: Database): void {
    const { sessions } = this;
    const query = db.query(
      `SELECT ${freeBytesOf("session_id")}, used, head FROM sessions WHERE ordinal > ? ORDER BY ordinal LIMIT ?`,
    );
    sessions.after = (ordinal, limit, unusedSince) => {
      this.flush();
      const rows = query.all<[sessionId: string, used: number, head: number | null]>([ordinal, ROWS_A_SCAN]);
      const found = rows.filter(([, used, head], n) => {
        const isLast = n === rows.length - 1;
        return isLast || used <= unusedSince || (head !== null && head <= unusedSince);
      });
      return found.slice(0, limit).flatMap(([sessionId]) => sessions.find(sessionId) ?? []);
    };
  }
}

type StoreState = State & { gateway: GatewayEnds };

export function newStoreState(): StoreState {
  return { ...newState(), gateway: { first: 1, last: 0 } };
}

/** The numbers about the whole store go into the file with each batch. */
function stateRow(db: Database) {
  let [written = ""] = db.query(`SELECT ${bytesOf("value")} FROM meta WHERE name = 'state'`).get<[string]>([]) ?? [];
  const stored = written === "" ? newStoreState() : (JSON.parse(written) as StoreState);
  const put = db.run("INSERT OR REPLACE INTO meta (name, value) VALUES ('state', ?)");
  const flush = (): void => {
    const text = JSON.stringify(stored);
    if (text === written) return;
    db.begin();
    put(text);
    written = text;
  };
  return { state: stored, flush };
}
