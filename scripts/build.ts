import { rm } from "node:fs/promises";
import { type BuildOptions, build } from "esbuild";
import ts from "typescript";

const common = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  legalComments: "none",
  logLevel: "warning",
} satisfies BuildOptions;
const clients = ["generated/clients/rest.ts", "generated/clients/rpc.ts"];

/** The types of the clients, for programs that import them by name. */
const declareClients = (): void => {
  const program = ts.createProgram(clients, {
    declaration: true,
    emitDeclarationOnly: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    outDir: "dist/types",
    rootDir: "generated",
    strict: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    module: ts.ModuleKind.Preserve,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: ["node"],
  });
  const { diagnostics } = program.emit();
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, host));
};
const host: ts.FormatDiagnosticsHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => process.cwd(),
  getNewLine: () => "\n",
};

// Our own code in one bundle; packages stay packages, so that `npm audit` and patches see them. What is loaded late (Express, the
// specs, drivers) becomes a chunk of its own.
await rm("dist", { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
});
// A thread's own program, found beside the chunk that starts it. By itself, so that the gateway's start has no more files to read.
await build({
  ...common,
  entryPoints: { "sqlite-worker": "src/store/sqlite/worker/worker.ts" },
  outdir: "dist/chunks",
});
await build({ ...common, entryPoints: clients, outdir: "dist/clients", platform: "neutral" });
declareClients();
