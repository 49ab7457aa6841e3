import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { generate, generatePages } from "./generate/generate.ts";
import type { Output } from "./generate/output.ts";
import { SpecError } from "./generate/spec-files.ts";

/** Writes generated/ from specs/. With --check it writes nothing, and fails if what is there is not what it would write. */
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
  if (values.check) check(output, values.out, filesIn(values.out));
  else write(output, values.out);
  if (values.pages !== undefined) {
    const pages = generatePages(values.specs);
    if (values.check) check(pages, values.pages, Object.keys(pages));
    else put(pages, values.pages);
  }
} catch (error) {
  if (!(error instanceof SpecError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

function write(output: Output, folder: string): void {
  for (const path of filesIn(folder)) if (output[path] === undefined) rmSync(join(folder, path));
  put(output, folder);
}

function put(output: Output, folder: string): void {
  for (const [path, content] of Object.entries(output)) {
    const file = join(folder, path);
    if (existsSync(file) && readFileSync(file, "utf8") === content) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
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
