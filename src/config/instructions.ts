import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { CheckedConfig } from "./conform.ts";
import type { Fault } from "./problems.ts";
import { unreadable } from "./read.ts";
import { traceOf } from "./trace.ts";

/** Instructions are written by people; what is larger is another file, and no model would read it. */
const MAX_BYTES = 1024 ** 2;

/** Reads the instructions of all agents that have them in a file of their own. */
export async function readInstructions(
  { agents }: CheckedConfig,
  file: string | null,
): Promise<{ instructions: ReadonlyMap<string, string>; files: Record<string, string>; faults: Fault[] }> {
  const faults: Fault[] = [];
  const files: Record<string, string> = {};
  const instructions = new Map<string, string>();
  const from = file === null ? "." : dirname(file);
  const read = async (name: string, written: string): Promise<void> => {
    const path = resolve(from, written);
    const refuse = (message: string) =>
      faults.push({ path: ["agents", name, "instructionsFile"], on: "value", message });
    files[path] = await traceOf(path);
    try {
      const bytes = await readFile(path);
      if (bytes.length > MAX_BYTES)
        refuse(`names the file \`${written}\`, which is larger than 1 MiB: name a file of instructions.`);
      else if (!/\S/.test(bytes.toString()))
        refuse(`names the file \`${written}\`, which is empty: write the instructions in it.`);
      else instructions.set(name, bytes.toString().trim());
    } catch (error) {
      refuse(`names the file ${unreadable(written, error)}`);
    }
  };
  await Promise.all(
    Object.entries(agents).map(([name, agent]) =>
      agent.instructionsFile === undefined ? undefined : read(name, agent.instructionsFile),
    ),
  );
  return { instructions, files, faults };
}
