/*
 * For things that come and go with every call. A Map or a Set makes its table anew all the time then, and each table that is left behind
 * points to the next one: once one of them has grown old, it keeps all that come after it, and all they hold, alive until the
 * next full collection. That was a sixth of the work of a busy gateway.
 */

/** Says that a thing is on no roster. */
export const NOWHERE = -1;

/** Things that each know their place on it. */
export class Roster<T extends { at: number }> {
  readonly #all: T[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(one: T): void {
    one.at = this.#all.length;
    this.#all.push(one);
  }

  delete(one: T): void {
    const { at } = one;
    if (at === NOWHERE) return;
    one.at = NOWHERE;
    const last = this.#all.pop() as T;
    if (last === one) return;
    this.#all[at] = last;
    last.at = at;
  }

  /** A copy, in no order: who looks through it may add and delete. */
  list(): T[] {
    return this.#all.slice();
  }
}

type Node<T> = { readonly id: string; value: T; next: Node<T> | undefined };

const FIRST_BUCKETS = 64;

/** Things by an id that ends in random characters, as ours do. */
export class IdTable<T> {
  #buckets: (Node<T> | undefined)[] = new Array(FIRST_BUCKETS).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: string): T | undefined {
    let node = this.#buckets[this.#bucketOf(id)];
    while (node !== undefined && node.id !== id) node = node.next;
    return node?.value;
  }

  set(id: string, value: T): void {
    const bucket = this.#bucketOf(id);
    let node = this.#buckets[bucket];
    while (node !== undefined && node.id !== id) node = node.next;
    if (node) {
      node.value = value;
      return;
    }
    this.#buckets[bucket] = { id, value, next: this.#buckets[bucket] };
    if (++this.#size > this.#buckets.length) this.#grow();
  }

  delete(id: string): boolean {
    const bucket = this.#bucketOf(id);
    let before: Node<T> | undefined;
    let node = this.#buckets[bucket];
    while (node !== undefined && node.id !== id) {
      before = node;
      node = node.next;
    }
    if (!node) return false;
    if (before) before.next = node.next;
    else this.#buckets[bucket] = node.next;
    node.next = undefined;
    this.#size--;
    return true;
  }

  /** A copy, in no order: who looks through it may set and delete. */
  values(): T[] {
    const values: T[] = [];
    for (let node of this.#buckets) for (; node; node = node.next) values.push(node.value);
    return values;
  }

  #bucketOf(id: string): number {
    const { length } = id;
    let hash = length;
    for (let at = length > LOOKED_AT ? length - LOOKED_AT : 0; at < length; at++) {
      hash = (Math.imul(hash, 33) + id.charCodeAt(at)) | 0;
    }
    return hash & (this.#buckets.length - 1);
  }

  #grow(): void {
    const old = this.#buckets;
    this.#buckets = new Array(old.length * 2).fill(undefined);
    for (let node of old) {
      while (node !== undefined) {
        const { next } = node;
        const bucket = this.#bucketOf(node.id);
        node.next = this.#buckets[bucket];
        this.#buckets[bucket] = node;
        node = next;
      }
    }
  }
}

/** So many characters at the end of an id: 40 random bits. */
const LOOKED_AT = 8;
