import { boundOf } from "#store/rules/retention.ts";
import type { AgentCounts } from "#store/store.ts";
import { gatewayStream } from "#store/tables/journal-rows.ts";
import { AGENTS, BEATS, COUNTS } from "#store/tables/layouts.ts";
import { newBookmarks, newState, type State, TableRecords } from "#store/tables/table-records.ts";
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

  constructor(db: Database, bookmarks = newBookmarks()) {
    const changedAgents = new Set<string>();
    const { state, flush } = stateRow(db);
    const live = liveRows(db, (kind, id) => {
      if (OF_AGENTS.has(kind)) changedAgents.add(id);
    });
    const journals = new Journals(db, state);
    const tables: { flush(): void; trim(): void }[] = [];
    super({
      state,
      bookmarks,
      table: (layout, changed) => {
        if (layout.isLive) return live.table(layout, changed);
        const table = new StoredTable(db, layout, changed);
        tables.push(table);
        return table;
      },
      journal: (ordinal) => journals.of(ordinal),
      gateway: gatewayStream(journals, state.gateway),
    });
    this.#changedAgents = changedAgents;
    this.#held = tables;
    // `tables` grows: a table is made at its first use.
    this.#written = [{ flush: () => flushAll(tables) }, live, journals, { flush }];
    this.#readSessions(db);
  }

  /** The counts of the agents that changed since the last call. */
  takeChangedAgents(): [agent: string, counts: AgentCounts][] {
    const changed = [...this.#changedAgents].map((agent): [string, AgentCounts] => [agent, this.agentCounts(agent)]);
    this.#changedAgents.clear();
    return changed;
  }

  /** True if a turn can be claimed, now or after its delay. */
  hasWork(): boolean {
    return this.turns.readyAgents().length > 0 || this.turns.nextDueAt() !== undefined;
  }

  /** Writes all changes. */
  flush(): void {
    flushAll(this.#written);
  }

  /** Drops records that are held only because they were used. */
  trim(): void {
    for (const table of this.#held) table.trim();
  }

  /** A sweep looks at two columns of most sessions, and not at the whole. */
  #readSessions(db: Database): void {
    const { sessions } = this;
    const query = db.query(
      `SELECT ${freeBytesOf("session_id")}, idle_at FROM sessions WHERE ordinal > ? ORDER BY ordinal LIMIT ?`,
    );
    sessions.after = (last, limit, bounds) => {
      this.flush();
      const rows = query.all<[sessionId: string, idleAt: number]>([last?.session.ordinal ?? 0, ROWS_A_SCAN]);
      const isLast = (n: number) => n === rows.length - 1;
      const found = rows.filter(([sessionId, idleAt], n) => isLast(n) || idleAt <= boundOf(sessionId, bounds));
      return found.slice(0, limit).flatMap(([sessionId]) => sessions.find(sessionId) ?? []);
    };
  }
}

function flushAll(written: readonly { flush(): void }[]): void {
  for (const one of written) one.flush();
}

/** The numbers about the whole store go into the file with each batch. */
function stateRow(db: Database) {
  let [written = ""] =
    db.query(`SELECT ${bytesOf("body")} FROM live WHERE kind = 'all' AND id = 'state'`).get<[string]>([]) ?? [];
  const state = written === "" ? newState() : (JSON.parse(written) as State);
  const put = db.run(
    "INSERT INTO live (kind, id, body) VALUES ('all', 'state', ?) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body",
  );
  const flush = (): void => {
    const text = JSON.stringify(state);
    if (text === written) return;
    db.begin();
    put(text);
    written = text;
  };
  return { state, flush };
}
