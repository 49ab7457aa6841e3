import type { Surface } from "#store/store.ts";
import {
  joinParts,
  type KeptDelivery,
  type OwnPart,
  type PackedDelivery,
  type PackedShared,
  type packSteps,
  type SharedPart,
} from "../delivery-codec.ts";
import { quoteAll } from "../json.ts";
import { bytesOf } from "../text.ts";
import type { Database, Rows } from "./database.ts";

type Steps = ReturnType<typeof packSteps>;
/** Of each its id, its kind and its weight; and where among those of the row is what it shares. Rows of version 1 share nothing. */
type Head = [ids: string[], kinds: number[], weights: number[], sharedAt?: number[], shared?: SharedPart[]];
/** What stands in a row: a part whose rest is in the head, or a whole one; 0 when it is gone. */
type InRow = OwnPart | KeptDelivery | 0;
type Stored = [first: number, head: string, gone: string | null, last: number];

/** Deliveries that are kept together; their places follow one another from `first` on. */
export type DeliveryBatch = { readonly first: number; size: number; left: number; readonly gone: Set<number> };
/** The marks of a row that can match. Only such a row is parsed, as most rows match no rare filter. */
export type Sought = {
  text: string | undefined;
  surface: Surface | undefined;
  kinds: readonly [least: number, most: number];
};
export type StoredDelivery = { batch: DeliveryBatch; deliveryId: string; place: number; kind: number; weight: number };

/** `shared`: the texts of what those of the row share. `lastShared` is how the last of them came. */
type NextRow = {
  batch: DeliveryBatch;
  ids: string[];
  kinds: number[];
  weights: number[];
  sharedAt: number[];
  shared: string[];
  lastShared: PackedShared | undefined;
  texts: string[];
  length: number;
};

/** So much goes into one row at most: who reads one delivery reads the whole row. */
const MOST_DELIVERIES = 64;
const MOST_TEXT = 131_072;

const READ = `${bytesOf("head")}, ${bytesOf("body")}`;

/** The rows of all deliveries: those that are recorded together share one. */
export class DeliveryRows {
  readonly #rows: Rows;
  readonly #gone: Rows;
  readonly #steps: Rows;
  readonly #deletes: readonly Rows[];
  readonly #body;
  readonly #below;
  readonly #stepsOf;
  readonly #rewrite;
  readonly #dropSteps;
  /** What is to become the next row. */
  #next: NextRow | undefined;
  readonly #batches = new Map<number, DeliveryBatch>();
  readonly #dirty = new Set<DeliveryBatch>();
  /** Where steps were added. */
  readonly #withSteps = new Set<number>();

  constructor(db: Database) {
    this.#rows = db.rows("INSERT INTO deliveries (first, head, body)", 3);
    this.#gone = db.rows("INSERT OR REPLACE INTO deliveries_gone (first, places)", 2);
    this.#steps = db.rows("INSERT OR REPLACE INTO delivery_steps (place, steps)", 2);
    this.#deletes = ["deliveries", "deliveries_gone"].map((table) => db.keys(`DELETE FROM ${table} WHERE first IN`));
    this.#body = db.query(`SELECT ${READ} FROM deliveries WHERE first = ?`);
    this.#below = db.query(`SELECT first, ${READ} FROM deliveries WHERE first < ? ORDER BY first DESC LIMIT ?`);
    this.#stepsOf = db.query(`SELECT ${bytesOf("steps")} FROM delivery_steps WHERE place = ?`);
    this.#rewrite = db.run("UPDATE deliveries SET head = ?, body = ? WHERE first = ?");
    this.#dropSteps = db.run("DELETE FROM delivery_steps WHERE place = ?");
  }

  /** Finds what was kept before, in its order. */
  *load(db: Database): Generator<StoredDelivery> {
    const steps = new Map<number, number>();
    const added = db.query("SELECT place, octet_length(steps) FROM delivery_steps");
    for (const [place, length] of added.all<[number, number]>([])) steps.set(place, length);
    const all = db.query(
      `SELECT first, ${bytesOf("head")}, ${bytesOf("places")} FROM deliveries LEFT JOIN deliveries_gone USING (first) ORDER BY first`,
    );
    for (const [first, head, gone] of all.all<Stored>([])) {
      const [ids, kinds, weights] = JSON.parse(head) as Head;
      const batch = {
        first,
        size: ids.length,
        left: 0,
        gone: new Set(gone === null ? [] : (JSON.parse(gone) as number[])),
      };
      batch.left = batch.size - batch.gone.size;
      this.#batches.set(first, batch);
      for (const [at, deliveryId] of ids.entries()) {
        const place = first + at;
        if (batch.gone.has(place)) continue;
        if (steps.has(place)) this.#withSteps.add(place);
        const weight = (weights[at] as number) + (steps.get(place) ?? 0);
        yield { batch, deliveryId, place, kind: kinds[at] as number, weight };
      }
    }
  }

  add(place: number, [deliveryId, kind, shared, text]: PackedDelivery, weight: number): DeliveryBatch {
    let next = this.#next;
    if (!next || next.texts.length >= MOST_DELIVERIES || next.length > MOST_TEXT) {
      this.#write();
      const batch = { first: place, size: 0, left: 0, gone: new Set<number>() };
      const none = { ids: [], kinds: [], weights: [], sharedAt: [], shared: [], texts: [] };
      next = { batch, ...none, lastShared: undefined, length: 0 };
      this.#next = next;
      this.#batches.set(place, batch);
    }
    next.ids.push(deliveryId);
    next.kinds.push(kind);
    next.weights.push(weight);
    next.sharedAt.push(placeOfShared(next, shared));
    next.texts.push(text);
    next.length += text.length;
    next.batch.size++;
    next.batch.left++;
    return next.batch;
  }

  letGo(batch: DeliveryBatch, place: number): void {
    batch.gone.add(place);
    batch.left--;
    this.#dirty.add(batch);
    if (this.#withSteps.delete(place)) this.#dropSteps([place]);
  }

  /** A delivery that was not let go. */
  read(batch: DeliveryBatch, place: number): KeptDelivery {
    const { head, bodies } = this.#rowOf(batch);
    const at = place - batch.first;
    return this.#withItsSteps(wholeOf(head, bodies[at] as Exclude<InRow, 0>, at), place);
  }

  /** Rows below a place, newest first, and if there are more. Rows that cannot match are passed over. */
  below(
    place: number,
    limit: number,
    sought: Sought,
  ): { rows: [place: number, kept: KeptDelivery][]; looked: number; next: number } {
    this.#write();
    const rows: [number, KeptDelivery][] = [];
    const found = this.#below.all<[number, string, string]>([place, limit]);
    let looked = 0;
    for (const [first, head, body] of found) {
      const batch = this.#batches.get(first);
      if (!batch) continue;
      looked += batch.size;
      if (sought.text !== undefined && !body.includes(sought.text)) continue;
      const heads = JSON.parse(head) as Head;
      if (!mayHold(heads, sought)) continue;
      const all = JSON.parse(body) as InRow[];
      for (let at = Math.min(batch.size, place - first) - 1; at >= 0; at--) {
        const kept = all[at];
        if (kept && !batch.gone.has(first + at)) rows.push([first + at, wholeOf(heads, kept, at)]);
      }
    }
    return { rows, looked, next: found.length < limit ? 0 : (found.at(-1)?.[0] ?? 0) };
  }

  /** Answers by how much it is longer now. */
  setSteps(place: number, steps: Steps): number {
    this.#steps.flush();
    const [before = ""] = this.#stepsOf.get<[string]>([place]) ?? [];
    const text = JSON.stringify(steps);
    this.#withSteps.add(place);
    this.#steps.add(place, text);
    return Buffer.byteLength(text) - Buffer.byteLength(before);
  }

  /** Puts another in the place of one, of which no byte is kept. */
  replace(batch: DeliveryBatch, place: number, kept: KeptDelivery, weight: number): void {
    this.#write();
    const { head, bodies } = this.#rowOf(batch);
    bodies[place - batch.first] = kept;
    for (const gone of batch.gone) bodies[gone - batch.first] = 0;
    head[2][place - batch.first] = weight;
    this.#rewrite([JSON.stringify(head), JSON.stringify(bodies), batch.first]);
    this.#steps.flush();
    if (this.#withSteps.delete(place)) this.#dropSteps([place]);
  }

  flush(): void {
    this.#write();
    this.#steps.flush();
    for (const batch of this.#dirty) {
      if (batch.left === 0) for (const rows of this.#deletes) rows.add(batch.first);
      else this.#gone.add(batch.first, JSON.stringify([...batch.gone]));
      if (batch.left === 0) this.#batches.delete(batch.first);
    }
    this.#dirty.clear();
    this.#gone.flush();
    for (const rows of this.#deletes) rows.flush();
  }

  #rowOf({ first }: DeliveryBatch): { head: Head; bodies: InRow[] } {
    this.#write();
    const [head, body] = this.#body.get<[string, string]>([first]) ?? ["[[],[],[]]", "[]"];
    return { head: JSON.parse(head) as Head, bodies: JSON.parse(body) as InRow[] };
  }

  #withItsSteps(kept: KeptDelivery, place: number): KeptDelivery {
    if (!this.#withSteps.has(place)) return kept;
    this.#steps.flush();
    const [steps] = this.#stepsOf.get<[string]>([place]) ?? [];
    const [kind, info, headers, own, body] = kept;
    return [kind, info, headers, steps === undefined ? own : (JSON.parse(steps) as Steps), body];
  }

  #write(): void {
    const next = this.#next;
    if (!next) return;
    this.#next = undefined;
    const numbers = [next.kinds, next.weights, next.sharedAt].map((list) => list.join(",")).join("],[");
    const head = `[${quoteAll(next.ids)},[${numbers}],[${next.shared.join(",")}]]`;
    this.#rows.add(next.batch.first, head, `[${next.texts.join(",")}]`);
    this.#rows.flush();
  }
}

/** The head of a row of version 1 does not tell the surface. */
const mayHold = ([, kinds, , , shared]: Head, { surface, kinds: [least, most] }: Sought): boolean =>
  kinds.some((kind) => kind >= least && kind <= most) &&
  (surface === undefined || shared === undefined || shared.some(([one]) => one === surface));

/** Where among what those of the row share this is: mostly where that of the one before is, which came as the same one. */
const placeOfShared = (next: NextRow, shared: PackedShared): number => {
  if (next.lastShared === shared) return next.sharedAt.at(-1) as number;
  next.lastShared = shared;
  const [text] = shared;
  const at = next.shared.indexOf(text);
  if (at >= 0) return at;
  next.length += text.length;
  return next.shared.push(text) - 1;
};

const wholeOf = ([, , , sharedAt = [], shared = []]: Head, kept: OwnPart | KeptDelivery, at: number): KeptDelivery =>
  kept.length === 5 ? kept : joinParts(kept, shared[sharedAt[at] as number] as SharedPart);
