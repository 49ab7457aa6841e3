import { Ordered } from "./ordered.ts";

/** Ids by the time at which each is due. */
export class DueTimes {
  readonly #byTime = new Ordered<number, Set<string>>();

  /** Moves `id` from one time to another; undefined is none. */
  move(id: string, from: number | undefined, to: number | undefined): void {
    if (from === to) return;
    const before = from === undefined ? undefined : this.#byTime.get(from);
    if (from !== undefined && before?.delete(id) && before.size === 0) this.#byTime.delete(from);
    if (to === undefined) return;
    const at = this.#byTime.get(to);
    if (at) at.add(id);
    else this.#byTime.set(to, new Set([id]));
  }

  next(): number | undefined {
    return this.#byTime.firstKey();
  }

  /** Ids that are due at `time` or earlier, by their times. */
  by(time: number): string[] {
    const next = this.next();
    return next === undefined || next > time ? [] : this.#byTime.through(time).flatMap((ids) => [...ids]);
  }
}
