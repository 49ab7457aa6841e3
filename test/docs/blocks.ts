import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "#test/harness/process.ts";

export type Block = { language: string; name: string; text: string };

/** The fenced blocks of a page, in order. What follows the language on the fence is the block's name. */
export const blocksOf = (page: string): Block[] =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```(\w*) ?(.*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = "", name = "", text = ""]) => ({ language, name, text }),
  );
