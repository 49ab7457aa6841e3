import type { MoreUsage, Usage } from "./store.ts";

export const usageOf = (input: number, output: number, more: MoreUsage | undefined): Usage =>
  more ? { input, output, more } : { input, output };
