import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isCommitted } from "./generate/code.ts";
import { generate, generatePages } from "./generate/generate.ts";
import { type Output, writeFiles } from "./generate/output.ts";
import { SpecError } from "./generate/spec-files.ts";

/** Writes generated/ from specs/. With --check it writes nothing, and fails if a committed file is not what it would write. */
const { values } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    specs: { type: "string", default: "specs" },
    out: { type: "string", default: "generated" },
    /** The folder of pages for people, some of which are written from the specs too. */
    pages: { type: "string" },
  },
});

try {
  const output = await generate(values.specs);
  const committed = Object.fromEntries(Object.entries(output).filter(([path]) => isCommitted(path)));
  if (values.check) check(committed, values.out, filesIn(values.out).filter(isCommitted));
  else write(output, values.out);
  if (values.pages !== undefined) {
    const pages = generatePages(values.specs);
    if (values.check) check(pages, values.pages, Object.keys(pages));
    else writeFiles(pages, values.pages);
  }
} catch (error) {
  if (!(error instanceof SpecError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

function write(output: Output, folder: string): void {
  for (const path of filesIn(folder)) if (output[path] === undefined) rmSync(join(folder, path));
  writeFiles(output, folder);
}

function check(output: Output, folder: string, files: string[]): void {
  const present = new Set(files.filter((path) => existsSync(join(folder, path))));
  const faults = [
    ...[...present].filter((path) => output[path] === undefined).map((path) => `${path} (no spec asks for it)`),
    ...Object.keys(output).filter(
      (path) => !present.has(path) || readFileSync(join(folder, path), "utf8") !== output[path],
    ),
  ];
  if (faults.length === 0) return;
  console.error(
    `${folder} is not what the specs say:\n${faults
      .sort()
      .map((fault) => `  ${fault}`)
      .join("\n")}`,
  );
  console.error("Run: npm run generate");
  process.exitCode = 1;
}

/** Not what links lead to, which `recursive` shows from Node 22 on: what is listed here may be deleted. */
function filesIn(folder: string, below = ""): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return filesIn(join(folder, entry.name), `${below}${entry.name}/`);
    return entry.isFile() ? [below + entry.name] : [];
  });
}
