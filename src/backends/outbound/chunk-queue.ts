import type { Chunk, ChunkHearer, HeardChunks, Used } from "../backend.ts";

type Reader = { resolve: (step: IteratorResult<Chunk>) => void; reject: (error: unknown) => void };

/** So many code units of text that nobody has read yet make the sender wait. */
const FULL = 256 * 1024;

/** Who fills a queue of chunks. */
export interface ChunkSource {
  /** Somebody wants the chunks. */
  begin(): void;
  /** What is read now is more than what was; it waits, or goes on. */
  full(isFull: boolean): void;
  /** Nobody reads any more. */
  leave(): void;
  /** What was used so far, where that is known before the end. */
  used?(): Used | undefined;
}

/**
 * The pieces of a reply between the connection that brings them and the turn that hears or reads them. Pieces of text that wait to be read
 * are put together.
 */
export class ChunkQueue implements HeardChunks {
  readonly #source: ChunkSource;
  #chunks: Chunk[] = [];
  #readers: Reader[] = [];
  #hearer: ChunkHearer | undefined = undefined;
  #waitingText = 0;
  #isFull = false;
  #hasBegun = false;
  #end: { error: unknown } | "end" | undefined;

  constructor(source: ChunkSource) {
    this.#source = source;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  used(): Used | undefined {
    return this.#source.used?.();
  }

  /** The same as `push` of a chunk of text. */
  say(text: string): void {
    if (this.#hearer && !this.#end) this.#hearer.text(text);
    else this.push({ text });
  }

  push(chunk: Chunk): void {
    if (this.#end) return;
    if (this.#hearer) {
      this.#hearer.chunk(chunk);
      return;
    }
    const reader = this.#readers.shift();
    if (reader) reader.resolve({ done: false, value: chunk });
    else if ("text" in chunk) {
      const last = this.#chunks.at(-1);
      if (last && "text" in last) last.text += chunk.text;
      else this.#chunks.push({ text: chunk.text });
      this.#waitingText += chunk.text.length;
      if (this.#waitingText > FULL && !this.#isFull) {
        this.#isFull = true;
        this.#source.full(true);
      }
    } else if (!("alive" in chunk) || this.#chunks.length === 0) this.#chunks.push(chunk);
  }

  end(): void {
    this.#finish("end");
  }

  /** What was pushed before is still read. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  hear(hearer: ChunkHearer): void {
    this.#hearer = hearer;
    this.#hasBegun = true;
    this.#source.begin();
  }

  next(): Promise<IteratorResult<Chunk>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#source.begin();
    }
    const chunk = this.#chunks.shift();
    if (chunk) {
      if ("text" in chunk) {
        this.#waitingText -= chunk.text.length;
        // The sender may go on, and fill it again, before this returns.
        if (this.#isFull && this.#waitingText <= FULL) {
          this.#isFull = false;
          this.#source.full(false);
        }
      }
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#end === undefined) return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    const end = this.#end;
    this.#end = "end";
    return end === "end" ? Promise.resolve(OVER) : Promise.reject(end.error);
  }

  return(): Promise<IteratorResult<Chunk>> {
    this.#chunks = [];
    this.#hearer = undefined;
    if (!this.#end) {
      this.#finish("end");
      this.#source.leave();
    }
    return Promise.resolve(OVER);
  }

  #finish(end: { error: unknown } | "end"): void {
    if (this.#end) return;
    this.#end = end;
    this.#hearer?.over(end === "end" ? undefined : end);
    const readers = this.#readers;
    this.#readers = [];
    const [first, ...others] = readers;
    if (!first) return;
    // They were waiting, so nothing is left to read.
    this.#end = "end";
    if (end === "end") first.resolve(OVER);
    else first.reject(end.error);
    for (const { resolve } of others) resolve(OVER);
  }
}

const OVER: IteratorResult<Chunk> = { done: true, value: undefined };
