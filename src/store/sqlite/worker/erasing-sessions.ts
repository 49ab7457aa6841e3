import type { Database, Rows } from "./database.ts";
import type { Parts } from "./parts.ts";

/** Sessions that are gone and of which some of the journal is left, by their ordinals. */
export class ErasingSessions {
  readonly #all = new Set<number>();
  readonly #inserts: Rows;
  readonly #delete: ReturnType<Database["run"]>;

  constructor({ db }: Parts) {
    this.#inserts = db.rows("INSERT INTO erasing", 1);
    this.#delete = db.run("DELETE FROM erasing WHERE session = ?");
    for (const [ordinal] of db.query("SELECT session FROM erasing").all<[number]>([])) this.#all.add(ordinal);
  }

  get size(): number {
    return this.#all.size;
  }

  [Symbol.iterator](): IterableIterator<number> {
    return this.#all[Symbol.iterator]();
  }

  add(ordinal: number): void {
    this.#all.add(ordinal);
    this.#inserts.add(ordinal);
  }

  delete(ordinal: number): void {
    this.flush();
    this.#all.delete(ordinal);
    this.#delete([ordinal]);
  }

  flush(): void {
    this.#inserts.flush();
  }
}
