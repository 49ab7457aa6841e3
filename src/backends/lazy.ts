import type { Backend } from "./backend.ts";

type Known = Pick<Backend, "kind" | "models" | "contextTokens" | "countTokens">;

/** A backend whose code is loaded with its first turn: what it needs costs the start of a gateway nothing. */
export const lazyBackend = (known: Known, load: () => Promise<Backend>): Backend => {
  let loading: Promise<Backend> | undefined;
  const loaded = (): Promise<Backend> => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
  return {
    ...known,
    async *run(turn, signal) {
      const backend = await loaded();
      yield* backend.run(turn, signal);
    },
    async summarise(messages, signal, used) {
      const backend = await loaded();
      return await backend.summarise(messages, signal, used);
    },
    async close() {
      const backend = await loading?.catch(() => undefined);
      await backend?.close?.();
    },
  };
};
