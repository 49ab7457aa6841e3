import type { ToolSource } from "./tool.ts";

/** Tools whose code is loaded at the first request for them, so that its dependencies do not slow the start of a gateway. */
export function lazyTools(load: () => Promise<ToolSource>): ToolSource {
  let loading: Promise<ToolSource> | undefined;
  return {
    async tools(signal, hops) {
      loading ??= load();
      return await (await loading).tools(signal, hops);
    },
    async [Symbol.asyncDispose]() {
      await (await loading)?.[Symbol.asyncDispose]();
    },
  };
}
