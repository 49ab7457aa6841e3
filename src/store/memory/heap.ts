/** Things by a number, the smallest first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #keyOf: (item: T) => number;

  constructor(keyOf: (item: T) => number) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    const key = this.#keyOf(item);
    let at = items.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#keyOf(items[above] as T) <= key) break;
      items[at] = items[above] as T;
      at = above;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    const key = this.#keyOf(last);
    let at = 0;
    for (let below = 1; below < items.length; below = at * 2 + 1) {
      if (below + 1 < items.length && this.#keyOf(items[below + 1] as T) < this.#keyOf(items[below] as T)) below++;
      if (this.#keyOf(items[below] as T) >= key) break;
      items[at] = items[below] as T;
      at = below;
    }
    items[at] = last;
    return first;
  }
}
