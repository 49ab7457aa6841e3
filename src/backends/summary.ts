import type { Chunk, TellUsed, Used } from "./backend.ts";

/** The text of a summary that comes in pieces. What it used is told once, as it was told last, also where it fails. */
export const summaryOf = async (chunks: AsyncIterable<Chunk>, used: TellUsed | undefined): Promise<string> => {
  let text = "";
  let usage: Used | undefined;
  let model: string | undefined;
  try {
    for await (const chunk of chunks) {
      if ("text" in chunk) text += chunk.text;
      else if ("usage" in chunk) usage = chunk.usage;
      else if ("model" in chunk) model = chunk.model;
    }
    return text;
  } finally {
    if (usage) used?.(usage, model);
  }
};
