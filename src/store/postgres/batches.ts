import { unavailable } from "./errors.ts";

/** So many orders may wait to be sent; who comes then is told to come later. */
const MOST_WAITING = 20_000;

/** A call grows no more once it is so long. */
const MOST_BYTES = 2_000_000;

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
  gates,
  send,
}: {
  most: number;
  atOnce: number;
  bytesOf: ((order: O) => number) | undefined;
  gates: Gates;
  send: (orders: readonly O[]) => Promise<readonly R[]>;
}): ((order: O, gate?: string) => Promise<R>) => {
  let waiting: Waiting<O, R>[] = [];
  let onTheirWay = 0;
  let isPlanned = false;

  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    // What comes in the same turn of the loop goes together.
    setImmediate(dispatch);
  };

  const dispatch = (): void => {
    isPlanned = false;
    while (onTheirWay < atOnce && waiting.length > 0) {
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
    try {
      const results = await send(batch.map(({ order }) => order));
      for (const [n, { resolve }] of batch.entries()) resolve(results[n] as R);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    onTheirWay--;
    gates.open(batch.flatMap(({ gate }) => (gate === undefined ? [] : [gate])));
    plan();
  };

  return (order, gate) => {
    if (waiting.length >= MOST_WAITING) return Promise.reject(unavailable("Too many calls wait for the database."));
    const settled = new Promise<R>((resolve, reject) => waiting.push({ order, gate, resolve, reject }));
    plan();
    return settled;
  };
};
