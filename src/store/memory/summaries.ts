import type { Compacted, Summary } from "#store/store.ts";

type Kept = Summary & {
  through: number;
  except: ReadonlySet<number>;
  lowest: number;
  bytes: number;
  /** Until that time nothing of the journal's head can go. */
  headKeptUntil: number;
};

/** What stands for the compacted messages of each session, by the session's ordinal. */
export class Summaries {
  #kept = new Map<number, Kept>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  put(ordinal: number, { summary, outside, except, ...compacted }: Compacted): void {
    const through = Math.max(compacted.through, this.#kept.get(ordinal)?.through ?? 0);
    this.forget(ordinal);
    const lowest = except.reduce((low, seq) => Math.min(low, seq), through + 1);
    const bytes = Buffer.byteLength(summary) + except.length * 40 + 200;
    const marks = { through, except: new Set(except), lowest };
    this.#kept.set(ordinal, { text: summary, outside, ...marks, bytes, headKeptUntil: 0 });
    this.#bytes += bytes;
  }

  forget(ordinal: number): void {
    this.#bytes -= this.#kept.get(ordinal)?.bytes ?? 0;
    this.#kept.delete(ordinal);
  }

  read(ordinal: number): Summary | undefined {
    const kept = this.#kept.get(ordinal);
    return kept && { text: kept.text, outside: kept.outside };
  }

  /** Whether some of the journal's head may be erased that is from `bound` or earlier. */
  mayErase(ordinal: number, bound: number): boolean {
    return bound >= (this.#kept.get(ordinal)?.headKeptUntil ?? Infinity);
  }

  /** Nothing of the journal's head can go before `time`, or the next compaction. */
  keepHead(ordinal: number, time: number): void {
    const kept = this.#kept.get(ordinal);
    if (kept) kept.headKeptUntil = time;
  }

  /** Tells of a message by its `seq` whether the summary stands for it. */
  marksOf(ordinal: number): { isCompacted: (seq: number) => boolean /** All below are. */; lowest: number } {
    const kept = this.#kept.get(ordinal);
    if (!kept) return NO_MARKS;
    const { through, except, lowest } = kept;
    return { isCompacted: (seq) => seq <= through && !except.has(seq), lowest };
  }
}

const NO_MARKS = { isCompacted: () => false, lowest: 0 };
