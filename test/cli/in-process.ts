import { vi } from "vitest";
import { run } from "#cli/run.ts";

type Printed = { out: string; err: string; code: typeof process.exitCode };

/** Runs a command in this process, and returns its output. */
export function printed(args: readonly string[]) {
  return captured(() => run(args));
}

export async function captured(act: () => Promise<void>): Promise<Printed> {
  let [out, err] = ["", ""];
  let code: typeof process.exitCode;
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      out += text;
      return true;
    }),
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      err += text;
      return true;
    }),
  ];
  const isOurs = new Set(process.listeners("SIGINT"));
  try {
    await act();
  } finally {
    for (const spy of spies) spy.mockRestore();
    for (const listener of process.listeners("SIGINT")) if (!isOurs.has(listener)) process.off("SIGINT", listener);
    process.stdout.removeAllListeners("error");
    code = process.exitCode;
    process.exitCode = undefined;
  }
  return { out, err, code };
}
