import type { Database, Rows } from "./database.ts";

/** So many numbers are set aside with one write. */
const BLOCK = 10_000;

/** Numbers that grow and are never given twice, also when the row that had the newest is gone. After a restart some are left out. */
export class Ordinals {
  readonly #name: string;
  readonly #rows: Rows;
  #last: number;
  #setAside: number;
  #isDirty = false;

  constructor(db: Database, name: string) {
    this.#name = `ordinals.${name}`;
    this.#rows = db.rows("INSERT OR REPLACE INTO meta", 2);
    const [kept] = db.query("SELECT value FROM meta WHERE name = ?").get<[number]>([this.#name]) ?? [0];
    this.#last = kept;
    this.#setAside = kept;
  }

  /** The newest that was given. */
  get last(): number {
    return this.#last;
  }

  next(): number {
    this.#last++;
    if (this.#last > this.#setAside) {
      this.#setAside += BLOCK;
      this.#isDirty = true;
    }
    return this.#last;
  }

  flush(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#rows.add(this.#name, this.#setAside);
    this.#rows.flush();
  }
}
