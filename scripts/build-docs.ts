import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { brokenLinks } from "./docs/links.ts";
import { buildSite, type Site } from "./docs/site.ts";
import { readContract } from "./generate/contract.ts";

/**
 * Builds the documentation into `folder`. The site needs no server: a browser can open its files. A gateway serves the overview at `/docs`, next to
 * the folder of its links, so it has a copy there. Texts are also stored in compressed form.
 */
export async function buildDocs(folder: string): Promise<Site> {
  const site: Site = { ...buildSite(readContract("specs")), "site.js": await scriptOf("scripts/docs/assets/site.ts") };
  const broken = brokenLinks(site);
  if (broken.length > 0) throw new Error(`${broken.join("\n")}\nMend the links of docs/, then run: npm run docs`);
  const root = String(site["index.html"]).replace("<head>", '<head>\n<base href="docs/">');
  for (const [path, content] of Object.entries({ ...site, "root.html": root })) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    if (typeof content === "string") await writeFile(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
  return site;
}

async function scriptOf(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
  });
  const licence = readFileSync("node_modules/minisearch/LICENSE.txt", "utf8").trim().split("\n")[0];
  return `/* Contains MiniSearch, ${licence}. */\n${outputFiles[0]?.text}`;
}
