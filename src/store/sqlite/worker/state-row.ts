import { newState, type State } from "#store/local/records.ts";
import { bytesOf } from "../text.ts";
import type { Database, Rows } from "./database.ts";
import type { GatewayEnds } from "./journal.ts";

type Kept = State & { gateway: GatewayEnds };

export const newKept = (): Kept => ({ ...newState(), gateway: { first: 1, last: 0, firstInFile: 1 } });

/** The numbers about the whole store go into the file with each batch. */
export class StateRow {
  readonly kept: Kept;
  readonly #db: Database;
  readonly #row: Rows;
  #written: string;

  constructor(db: Database) {
    const [text] = db.query(`SELECT ${bytesOf("value")} FROM meta WHERE name = 'state'`).get<[string]>([]) ?? [];
    this.kept = text === undefined ? newKept() : (JSON.parse(text) as Kept);
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
