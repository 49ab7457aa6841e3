/*
 * For things that come and go with every call. A Set makes its table anew all the time then, and each table that is left behind
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

  /** A copy, in no order: its reader may add and delete meanwhile. */
  list(): T[] {
    return this.#all.slice();
  }
}
