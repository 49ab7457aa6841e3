import { unavailable } from "./errors.ts";

/** So many orders may wait to be sent; who comes then is told to come later. */
const MOST_WAITING = 20_000;

/** A call grows no more once it is so long. */
const MOST_BYTES = 2_000_000;

/** Beside a call that is on its way another goes only with so many: few of them are better sent together with who comes next. */
const ENOUGH = 16;

/** However long calls take. */
const LONGEST_WAIT_MS = 5;

type Waiting<O, R> = {
  readonly order: O;
  readonly gate: string | undefined;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
};

/** Who has something on its way that others must not overtake: sessions, by their id. */
export class Gates {
  readonly #shut = new Set<string>();
  readonly #waiting = new Set<() => void>();

  isShut(gate: string): boolean {
    return this.#shut.has(gate);
  }

  shut(gate: string): void {
    this.#shut.add(gate);
  }

  open(gates: Iterable<string>): void {
    for (const gate of gates) this.#shut.delete(gate);
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }

  /** Calls `look` once, when some gate has opened. */
  onOpen(look: () => void): void {
    this.#waiting.add(look);
  }
}

/**
 * Lets orders that come while others are on their way share a call and a commit. Those of one gate go one after another, in their
 * order, so that what they brought about is told in its order too.
 */
export const createBatcher = <O, R>({
  most,
  atOnce,
  bytesOf,
  pauseOf,
  gates,
  send,
}: {
  most: number;
  atOnce: number;
  bytesOf: ((order: O) => number) | undefined;
  /** How long nothing is sent after a call that took so long. */
  pauseOf: ((tookMs: number) => number) | undefined;
  gates: Gates;
  send: (orders: readonly O[]) => Promise<readonly R[]>;
}): ((order: O, gate?: string) => Promise<R>) => {
  let waiting: Waiting<O, R>[] = [];
  let onTheirWay = 0;
  let isPlanned = false;
  /** Who was answered just now may well order again: so many are waited for, at most until then. */
  let expected = 0;
  let expectedUntil = 0;
  let pausedUntil = 0;
  let patience: NodeJS.Timeout | undefined;

  const plan = (): void => {
    if (isPlanned || waiting.length === 0) return;
    const leftMs = Math.max(pausedUntil, waiting.length < expected ? expectedUntil : 0) - performance.now();
    if (leftMs > 0) patience ??= setTimeout(goOn, leftMs);
    else goOn();
  };

  const goOn = (): void => {
    clearTimeout(patience);
    patience = undefined;
    expected = 0;
    isPlanned = true;
    // What comes in the same turn of the loop goes together.
    setImmediate(dispatch);
  };

  const dispatch = (): void => {
    isPlanned = false;
    while (onTheirWay < atOnce && waiting.length >= (onTheirWay === 0 ? 1 : ENOUGH)) {
      const batch = takeBatch();
      if (batch.length === 0) {
        gates.onOpen(plan);
        return;
      }
      onTheirWay++;
      void run(batch);
    }
  };

  const takeBatch = (): Waiting<O, R>[] => {
    const batch: Waiting<O, R>[] = [];
    const left: Waiting<O, R>[] = [];
    const own = new Set<string>();
    let bytes = 0;
    for (const one of waiting) {
      const isHeld = one.gate !== undefined && gates.isShut(one.gate) && !own.has(one.gate);
      if (isHeld || batch.length === most || bytes > MOST_BYTES) {
        left.push(one);
        continue;
      }
      if (one.gate !== undefined) {
        own.add(one.gate);
        gates.shut(one.gate);
      }
      batch.push(one);
      bytes += bytesOf?.(one.order) ?? 0;
    }
    waiting = left;
    return batch;
  };

  const run = async (batch: readonly Waiting<O, R>[]): Promise<void> => {
    const began = performance.now();
    try {
      const results = await send(batch.map(({ order }) => order));
      for (const [n, { resolve }] of batch.entries()) resolve(results[n] as R);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    onTheirWay--;
    expectAgain(batch.length + waiting.length, performance.now() - began);
    gates.open(batch.flatMap(({ gate }) => (gate === undefined ? [] : [gate])));
    plan();
  };

  /** Callers that wait for their answers before they ask anew come all at once: together they are one call, and half are two. */
  const expectAgain = (many: number, tookMs: number): void => {
    const now = performance.now();
    if (pauseOf) pausedUntil = now + pauseOf(tookMs);
    if (many < 2) return;
    expected = Math.min(many, most);
    expectedUntil = now + Math.min(tookMs / 4, LONGEST_WAIT_MS);
  };

  return (order, gate) => {
    if (waiting.length >= MOST_WAITING) return Promise.reject(unavailable("Too many calls wait for the database."));
    const settled = new Promise<R>((resolve, reject) => waiting.push({ order, gate, resolve, reject }));
    plan();
    return settled;
  };
};
