/** The part of an order that is asked for: keys above, below or up to a bound. */
export type Range<K> = { above?: K; below?: K; upTo?: K; limit?: number; newestFirst?: boolean };

/**
 * Values in the order of their keys, and those of one key in the order of their coming. Most come with the greatest key, and most that go
 * are the first.
 */
export class Ordered<K extends number | string, V> {
  #keys: K[] = [];
  /** A value that has gone leaves its place empty until many have. */
  #values: (V | undefined)[] = [];
  /** Nothing before it is there. */
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): V | undefined {
    return this.#values[this.#head];
  }

  add(key: K, value: V): void {
    const length = this.#keys.length;
    const isLast = length === 0 || (this.#keys[length - 1] as K) <= key;
    const at = isLast ? length : this.#placeAfter(key);
    this.#size++;
    if (isLast) {
      this.#keys.push(key);
      this.#values.push(value);
      return;
    }
    this.#keys.splice(at, 0, key);
    this.#values.splice(at, 0, value);
    this.#head = Math.min(this.#head, at);
  }

  delete(key: K, value: V): void {
    let at = this.#placeOf(key);
    while (this.#keys[at] === key && this.#values[at] !== value) at++;
    if (this.#keys[at] !== key) return;
    this.#values[at] = undefined;
    this.#size--;
    while (this.#head < this.#values.length && this.#values[this.#head] === undefined) this.#head++;
    if (this.#values.length - this.#size > Math.max(this.#size, 32)) this.#closeUp();
  }

  scan({ above, below, upTo, limit = Infinity, newestFirst = false }: Range<K>): V[] {
    const start = above === undefined ? this.#head : Math.max(this.#placeAfter(above), this.#head);
    let end = this.#values.length;
    if (below !== undefined) end = this.#placeOf(below);
    else if (upTo !== undefined) end = this.#placeAfter(upTo);
    const found: V[] = [];
    const step = newestFirst ? -1 : 1;
    for (let at = newestFirst ? end - 1 : start; at >= start && at < end && found.length < limit; at += step) {
      const value = this.#values[at];
      if (value !== undefined) found.push(value);
    }
    return found;
  }

  /** The first place whose key is not smaller. */
  #placeOf(key: K): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as K) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first place whose key is greater. */
  #placeAfter(key: K): number {
    let at = this.#placeOf(key);
    while (this.#keys[at] === key) at++;
    return at;
  }

  #closeUp(): void {
    const isThere = (_: unknown, at: number) => this.#values[at] !== undefined;
    this.#keys = this.#keys.filter(isThere);
    this.#values = this.#values.filter((value) => value !== undefined);
    this.#head = 0;
  }
}
