import { UsageError } from "./failures.ts";
import { forTerminal, isTerminal } from "./terminal.ts";

/** Asks before something that cannot be undone. Without a terminal, `--yes` is required. */
export async function confirmed(question: string, { yes }: { yes?: boolean }, signal: AbortSignal): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !isTerminal(process.stderr))
    throw new UsageError(`${question} There is no terminal to ask.`, "confirm with --yes");
  const { createInterface } = await import("node:readline/promises");
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(forTerminal(`${question} [y/N] `), { signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError("Nothing was done.");
  } finally {
    asking.close();
  }
}
