import { once } from "#kit/once.ts";
import type { Backend, Chunks } from "./backend.ts";

type Known = Pick<Backend, "kind" | "models" | "asksOutside" | "contextTokens" | "countTokens">;

/** A backend whose code is loaded with its first turn, so that its dependencies do not slow the start of a gateway. */
export function lazyBackend(known: Known, load: () => Promise<Backend>): Backend {
  let there: Backend | undefined;
  let loading: Promise<Backend> | undefined;
  const loadOnce = once(async () => {
    there = await load();
    return there;
  });
  const loaded = () => {
    loading = loadOnce();
    return loading;
  };
  const first = (...[turn, signal]: Parameters<Backend["run"]>): Chunks => {
    let chunks: Chunks | undefined;
    async function* read() {
      const backend = await turn.watch.pause(loaded());
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
    summarise: async (...args) => await (await loaded()).summarise(...args),
    async close() {
      const backend = await loading?.catch(() => undefined);
      await backend?.close?.();
    },
  };
}
