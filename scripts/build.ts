import { rm } from "node:fs/promises";
import { build } from "esbuild";

// One bundle of our own code; packages stay packages, so that `npm audit` and patches see them. What is loaded late (Express, the
// specs, drivers) becomes a chunk of its own.
await rm("dist", { recursive: true, force: true });
await build({
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  chunkNames: "chunks/[name]-[hash]",
  legalComments: "none",
  logLevel: "warning",
});
