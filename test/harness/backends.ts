import type { Backend, BackendTurn, Chunk } from "#backends/backend.ts";

/** One turn whose backend a test controls. */
export type Played = {
  turn: BackendTurn;
  signal: AbortSignal;
  say(text: string): void;
  use(usage: { input: number; output: number }): void;
  end(): void;
  fail(error: unknown): void;
};

/** A backend that a test controls. `next` is the next turn that reached it. */
export function createPuppet(models?: readonly string[]): { backend: Backend; next(): Promise<Played> } {
  const begun = createQueue<Played>();
  const run = (turn: BackendTurn, signal: AbortSignal): AsyncIterable<Chunk> => {
    const said = createQueue<Chunk | { end: true } | { error: unknown }>();
    begun.put({
      turn,
      signal,
      say: (text) => said.put({ text }),
      use: (usage) => said.put({ usage }),
      end: () => said.put({ end: true }),
      fail: (error) => said.put({ error }),
    });
    return (async function* () {
      for (;;) {
        const next = await said.take();
        if ("end" in next) return;
        if ("error" in next) throw next.error;
        yield next;
      }
    })();
  };
  const summarise = async () => "a summary";
  return { backend: { kind: "puppet", models, run, summarise }, next: begun.take };
}

export function createQueue<T>() {
  const items: T[] = [];
  const takers: ((item: T) => void)[] = [];
  return {
    put(item: T): void {
      const taker = takers.shift();
      if (taker) taker(item);
      else items.push(item);
    },
    take: (): Promise<T> =>
      items.length > 0 ? Promise.resolve(items.shift() as T) : new Promise((resolve) => takers.push(resolve)),
  };
}
