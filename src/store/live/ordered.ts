/** Values in the order of their keys. Most come with a greater key than all before them, and most that go are the first. */
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

  get(key: K): V | undefined {
    const at = this.#placeOf(key);
    return this.#keys[at] === key ? this.#values[at] : undefined;
  }

  set(key: K, value: V): void {
    const last = this.#keys.at(-1);
    const at = last === undefined || key > last ? this.#keys.length : this.#placeOf(key);
    if (this.#keys[at] !== key) {
      this.#keys.splice(at, 0, key);
      this.#values.splice(at, 0, value);
      this.#head = Math.min(this.#head, at);
      this.#size++;
      return;
    }
    if (this.#values[at] === undefined) this.#size++;
    this.#values[at] = value;
    this.#head = Math.min(this.#head, at);
  }

  delete(key: K): void {
    const at = this.#placeOf(key);
    if (this.#keys[at] !== key || this.#values[at] === undefined) return;
    this.#values[at] = undefined;
    this.#size--;
    while (this.#head < this.#values.length && this.#values[this.#head] === undefined) this.#head++;
    if (this.#values.length - this.#size > Math.max(this.#size, 32)) this.#closeUp();
  }

  first(): V | undefined {
    return this.#values[this.#head];
  }

  firstKey(): K | undefined {
    return this.#size === 0 ? undefined : this.#keys[this.#head];
  }

  /** Values with a greater key, in order. */
  after(key: K | undefined, limit: number): V[] {
    const found: V[] = [];
    let at = key === undefined ? this.#head : this.#placeOf(key);
    if (this.#keys[at] === key) at++;
    for (at = Math.max(at, this.#head); at < this.#values.length && found.length < limit; at++) {
      const value = this.#values[at];
      if (value !== undefined) found.push(value);
    }
    return found;
  }

  /** Values with that key or a smaller one, in order. */
  through(key: K): V[] {
    const at = this.#placeOf(key);
    const end = this.#keys[at] === key ? at + 1 : at;
    return this.#values.slice(this.#head, end).filter((value) => value !== undefined);
  }

  /** Values with a smaller key, the greatest first. */
  before(key: K | undefined, limit: number): V[] {
    const found: V[] = [];
    let at = key === undefined ? this.#keys.length : this.#placeOf(key);
    while (--at >= this.#head && found.length < limit) {
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

  #closeUp(): void {
    const isThere = (_: unknown, at: number) => this.#values[at] !== undefined;
    this.#keys = this.#keys.filter(isThere);
    this.#values = this.#values.filter((value) => value !== undefined);
    this.#head = 0;
  }
}
