import type { Backend, Chunks } from "./backend.ts";

type Known = Pick<Backend, "kind" | "models" | "asksOutside" | "contextTokens" | "countTokens">;

/** A backend whose code is loaded with its first turn, so that its dependencies do not slow the start of a gateway. */
export const lazyBackend = (known: Known, load: () => Promise<Backend>): Backend => {
  let loading: Promise<Backend> | undefined;
  let there: Backend | undefined;
  const loaded = (): Promise<Backend> => {
    loading ??= load().then(
      (backend) => {
        there = backend;
        return backend;
      },
      (error: unknown) => {
        loading = undefined;
        throw error;
      },
    );
    return loading;
  };
  const first = (...[turn, signal]: Parameters<Backend["run"]>): Chunks => {
    let chunks: Chunks | undefined;
    async function* read() {
      const backend = await turn.aside(loaded());
      chunks = backend.run(turn, signal);
      yield* chunks;
    }
    return Object.assign(read(), { used: () => chunks?.used?.() });
  };
  return {
    ...known,
    // Once it is loaded, its pieces go straight to the reader.
    run: (turn, signal) => (there ? there.run(turn, signal) : first(turn, signal)),
    restMs: (model) => there?.restMs?.(model) ?? 0,
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
