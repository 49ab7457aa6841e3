type Node<T> = { readonly slot: number; value: T; next: Node<T> | undefined };

const FIRST_BUCKETS = 64;

/** Things by a whole number. Not a Map, for the reason that core/tables.ts gives: they come and go with every turn. */
export class SlotTable<T> {
  #buckets: (Node<T> | undefined)[] = new Array(FIRST_BUCKETS).fill(undefined);
  #size = 0;

  get(slot: number): T | undefined {
    let node = this.#buckets[slot & (this.#buckets.length - 1)];
    while (node !== undefined && node.slot !== slot) node = node.next;
    return node?.value;
  }

  set(slot: number, value: T): void {
    const bucket = slot & (this.#buckets.length - 1);
    for (let node = this.#buckets[bucket]; node; node = node.next) {
      if (node.slot !== slot) continue;
      node.value = value;
      return;
    }
    this.#buckets[bucket] = { slot, value, next: this.#buckets[bucket] };
    if (++this.#size > this.#buckets.length) this.#grow();
  }

  delete(slot: number): void {
    const bucket = slot & (this.#buckets.length - 1);
    let before: Node<T> | undefined;
    for (let node = this.#buckets[bucket]; node; before = node, node = node.next) {
      if (node.slot !== slot) continue;
      if (before) before.next = node.next;
      else this.#buckets[bucket] = node.next;
      // One that has grown old would keep those behind it.
      node.next = undefined;
      this.#size--;
      return;
    }
  }

  #grow(): void {
    const old = this.#buckets;
    this.#buckets = new Array(old.length * 2).fill(undefined);
    this.#size = 0;
    for (const first of old) for (let node = first; node; node = node.next) this.set(node.slot, node.value);
  }
}
