import type { ToolSource } from "./tool.ts";

/** Tools whose code is loaded when they are first asked for: what it needs costs the start of a gateway nothing. */
export const lazyTools = (load: () => Promise<ToolSource>): ToolSource => {
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
};
