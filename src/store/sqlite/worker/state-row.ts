import type { Bookmarks } from "#store/rules/records.ts";
import { bytesOf } from "../text.ts";
import type { Database, Rows } from "./database.ts";
import type { Shelves } from "./deliveries.ts";
import type { GatewayEnds } from "./gateway-stream.ts";

type Kept = {
  numbers: { session: number; event: number; place: number; order: number };
  sessions: number;
  /** The weight of all but the recorder's. */
  bytes: number;
  shelves: Shelves;
  gateway: GatewayEnds;
  bookmarks: Bookmarks;
};

const NEW: Kept = {
  numbers: { session: 0, event: 0, place: 0, order: 0 },
  sessions: 0,
  bytes: 0,
  shelves: { refused: { size: 0, bytes: 0, ended: 0 }, others: { size: 0, bytes: 0, ended: 0 } },
  gateway: { first: 1, last: 0, firstInFile: 1 },
  bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Number.MAX_SAFE_INTEGER },
};

/** Numbers about the whole store, which go into the file with each batch: to count anew takes long. */
export class StateRow {
  readonly kept: Kept;
  readonly #db: Database;
  readonly #row: Rows;
  #written: string;

  constructor(db: Database) {
    const [text] = db.query(`SELECT ${bytesOf("value")} FROM meta WHERE name = 'state'`).get<[string]>([]) ?? [];
    this.kept = text === undefined ? structuredClone(NEW) : (JSON.parse(text) as Kept);
    this.#db = db;
    this.#row = db.rows("INSERT OR REPLACE INTO meta (name, value)", 2);
    this.#written = text ?? "";
  }

  flush(): void {
    const text = JSON.stringify(this.kept);
    if (text === this.#written) return;
    this.#db.begin();
    this.#row.add("state", text);
    this.#row.flush();
    this.#written = text;
  }
}
