import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isCommitted } from "./code.ts";
import { generate, generatePages } from "./generate.ts";
import { type Output, writeFiles } from "./output.ts";
import { SpecError } from "./spec-files.ts";

/**
 * Writes generated/ from specs/, and returns the exit code. With --check it writes nothing, and fails if a committed file differs.
 */
export async function generateCommand(args: readonly string[], complain: (text: string) => void): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      check: { type: "boolean", default: false },
      specs: { type: "string", default: "specs" },
      out: { type: "string", default: "generated" },
      /** The folder of the documentation. Some of its pages are generated from the specs. */
      pages: { type: "string" },
    },
  });
  try {
    const output = await generate(values.specs);
    const committed = Object.fromEntries(Object.entries(output).filter(([path]) => isCommitted(path)));
    const faults = values.check ? faultsOf(committed, values.out, filesIn(values.out).filter(isCommitted)) : [];
    if (!values.check) write(output, values.out);
    if (values.pages !== undefined) {
      const pages = generatePages(values.specs, values.pages);
      if (values.check) faults.push(...faultsOf(pages, values.pages, Object.keys(pages)));
      else writeFiles(pages, values.pages);
    }
    if (faults.length === 0) return 0;
    complain([...faults, "Run: npm run generate"].join("\n"));
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    complain(error.message);
  }
  return 1;
}

function write(output: Output, folder: string): void {
  for (const path of filesIn(folder)) if (output[path] === undefined) rmSync(join(folder, path));
  writeFiles(output, folder);
}

/** Lists the files of a folder that differ from the generated ones. */
function faultsOf(output: Output, folder: string, files: string[]): string[] {
  const present = new Set(files.filter((path) => existsSync(join(folder, path))));
  const faults = [
    ...[...present].filter((path) => output[path] === undefined).map((path) => `${path} (no spec generates it)`),
    ...Object.keys(output).filter(
      (path) => !present.has(path) || readFileSync(join(folder, path), "utf8") !== output[path],
    ),
  ];
  return faults.length === 0
    ? []
    : [`${folder} differs from the specs:`, ...faults.sort().map((fault) => `  ${fault}`)];
}

/** Does not follow links, as `recursive` does from Node 22 on: files listed here may be deleted. */
function filesIn(folder: string, below = ""): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return filesIn(join(folder, entry.name), `${below}${entry.name}/`);
    return entry.isFile() ? [below + entry.name] : [];
  });
}
