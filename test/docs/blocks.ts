import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "#test/harness/process.ts";

export type Block = { language: string; name: string; text: string };

/** The fenced blocks of a page, in order. The text after the language of the fence is the block's name. */
export function blocksOf(page: string): Block[] {
  return [...readFileSync(join(root, page), "utf8").matchAll(/^```(\w*) ?(.*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = "", name = "", text = ""]) => ({ language, name, text }),
  );
}

/** A block, adapted for a gateway of a test. */
export function at(url: string, text: string): string {
  return text.replaceAll("127.0.0.1:18789", new URL(url).host);
}

const run = promisify(execFile);

/** Runs a block as if it were pasted; returns its output. */
export async function paste(text: string, env: Record<string, string>, cwd?: string): Promise<string> {
  const all = { PATH: process.env.PATH, ...env };
  return (await run("bash", ["-c", `set -euo pipefail\n${text}`], { cwd, env: all })).stdout;
}
