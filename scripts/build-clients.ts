import { spawnSync } from "node:child_process";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import ts from "typescript";

// Builds the packages of the SDKs for publishing: npm publish dist/clients/typescript, twine upload dist/clients/python/*. The second needs python3.

const FROM = "generated/clients/typescript";
const TO = "dist/clients/typescript";
const entries = ["index", "rest", "rpc", "webhooks"].map((name) => join(FROM, "src", `${name}.ts`));

function declare(): void {
  const program = ts.createProgram(entries, {
    declaration: true,
    emitDeclarationOnly: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    outDir: join(TO, "dist"),
    rootDir: join(FROM, "src"),
    strict: true,
    isolatedModules: true,
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    module: ts.ModuleKind.Preserve,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
  });
  const found = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
  if (found.length > 0) throw new Error(ts.formatDiagnostics(found, host));
}
const host: ts.FormatDiagnosticsHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => process.cwd(),
  getNewLine: () => "\n",
};

await rm(TO, { recursive: true, force: true });
await mkdir(TO, { recursive: true });
await build({
  entryPoints: entries,
  outdir: join(TO, "dist"),
  bundle: true,
  splitting: true,
  chunkNames: "[name]-[hash]",
  format: "esm",
  platform: "neutral",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
});
declare();
for (const name of ["package.json", "README.md", "api.md"]) await copyFile(join(FROM, name), join(TO, name));
await copyFile("LICENSE", join(TO, "LICENSE"));

const PYTHON = "dist/clients/python";
await rm(PYTHON, { recursive: true, force: true });
await mkdir(PYTHON, { recursive: true });
const to = JSON.stringify(resolve(PYTHON));
const { status } = spawnSync(
  "python3",
  ["-B", "-c", `import build_backend; build_backend.build_sdist(${to}); build_backend.build_wheel(${to})`],
  { cwd: "generated/clients/python", stdio: "inherit" },
);
if (status === null) console.warn("There is no python3 here: the package for Python is not built.");
else if (status !== 0) process.exitCode = status;
