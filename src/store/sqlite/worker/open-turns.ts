import { IdTable, Roster } from "#kit/tables.ts";
import { bytesOf } from "../text.ts";
import type { AgentCounters } from "./agent-counters.ts";
import type { Rows } from "./database.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { TurnRow } from "./rows.ts";
import type { Sessions } from "./sessions.ts";
import type { TotalsRow } from "./totals.ts";
import { decodeOpenTurn, encodeOpenTurn } from "./turn-codec.ts";

/** What an open turn weighs beside its entries. */
const OPEN_BYTES = 600;

/** Turns that have not ended: all are held, and written once a batch. */
export class OpenTurns {
  readonly running = new Roster<TurnRow>();
  readonly #totals: TotalsRow;
  readonly #agents: AgentCounters;
  readonly #places: Ordinals;
  readonly #rows: Rows;
  readonly #deletes: Rows;
  readonly #byId = new IdTable<TurnRow>();
  /** What is added to monotonic times to keep them past the process: the wall clock when it began. */
  readonly #offset: number;
  #dirty: TurnRow[] = [];

  constructor({ db, totals, agents, moment }: Parts, sessions: Sessions) {
    this.#totals = totals;
    this.#agents = agents;
    this.#offset = moment.offset;
    this.#places = new Ordinals(db, "turns");
    this.#rows = db.rows("INSERT OR REPLACE INTO open_turns", 3);
    this.#deletes = db.keys("DELETE FROM open_turns WHERE place IN");
    totals.counts.turnsQueued = 0;
    totals.counts.turnsRunning = 0;
    const stored = db.query(`SELECT place, session, ${bytesOf("body")} FROM open_turns ORDER BY place`);
    for (const [place, ordinal, body] of stored.all<[number, number, string]>([])) {
      const session = sessions.at(ordinal);
      if (!session) continue;
      const row = decodeOpenTurn(place, session, body, moment);
      session.queue.push(row);
      this.#byId.set(row.turnId, row);
      this.#count(row, 1);
    }
  }

  get(turnId: string): TurnRow | undefined {
    return this.#byId.get(turnId);
  }

  /** In the order of their coming. */
  list(): TurnRow[] {
    return this.#byId.values().sort((a, b) => a.place - b.place);
  }

  nextPlace(): number {
    return this.#places.next();
  }

  /** Adds a turn that is queued. */
  add(row: TurnRow): void {
    this.#byId.set(row.turnId, row);
    this.#totals.addBytes(OPEN_BYTES);
    this.#count(row, 1);
    this.touch(row);
  }

  /** The turn is queued, or runs, from now on. */
  move(row: TurnRow, status: "queued" | "running"): void {
    this.#count(row, -1);
    row.status = status;
    this.#count(row, 1);
    this.touch(row);
  }

  /** The turn has ended: its row still says what it was. Its agent's counts are the caller's. */
  delete(row: TurnRow): void {
    this.#byId.delete(row.turnId);
    this.#totals.addBytes(-OPEN_BYTES);
    if (row.status === "running") this.#totals.counts.turnsRunning--;
    else this.#totals.counts.turnsQueued--;
    this.running.delete(row);
    row.isGone = true;
    if (row.isStored) this.#deletes.add(row.place);
  }

  /** Its row is to be written with the batch. */
  touch(row: TurnRow): void {
    if (row.isDirty) return;
    row.isDirty = true;
    this.#dirty.push(row);
  }

  flush(): void {
    this.#places.flush();
    for (const row of this.#dirty) {
      row.isDirty = false;
      if (row.isGone) continue;
      row.isStored = true;
      this.#rows.add(row.place, row.session.ordinal, encodeOpenTurn(row, this.#offset));
    }
    this.#dirty = [];
    this.#rows.flush();
    this.#deletes.flush();
  }

  #count(row: TurnRow, by: 1 | -1): void {
    if (row.status === "running") {
      this.#totals.counts.turnsRunning += by;
      this.#agents.of(row.agent).running += by;
      if (by > 0) this.running.add(row);
      else this.running.delete(row);
    } else {
      this.#totals.counts.turnsQueued += by;
      this.#agents.of(row.agent).queued += by;
    }
  }
}
