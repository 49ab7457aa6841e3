import { copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import ts from "typescript";

// The packages of the SDKs, ready to be published. The TypeScript one: npm publish dist/clients/typescript.

const FROM = "generated/clients/typescript";
const TO = "dist/clients/typescript";
const entries = ["index", "rest", "rpc", "webhooks"].map((name) => join(FROM, "src", `${name}.ts`));

const declare = (): void => {
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
};
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
