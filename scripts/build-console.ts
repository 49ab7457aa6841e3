import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";

const SOURCE = "src/console";
const require = createRequire(import.meta.url);

/** The drawings of the named Lucide icons, as data from which the page creates elements, because Trusted Types do not allow to parse markup. */
const icons: Plugin = {
  name: "icons",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^virtual:icons$/ }, ({ path }) => ({ path, namespace: "icons" }));
    onLoad({ filter: /.*/, namespace: "icons" }, async () => {
      const list = join(SOURCE, "parts/icon-names.json");
      const names = JSON.parse(await readFile(list, "utf8")) as string[];
      const folder = dirname(require.resolve("lucide-static/package.json"));
      const drawn = await Promise.all(
        names.map(async (name) => [name, shapesIn(await readFile(join(folder, "icons", `${name}.svg`), "utf8"))]),
      );
      return { contents: JSON.stringify(Object.fromEntries(drawn)), loader: "json", watchFiles: [list] };
    });
  },
};

/** The shapes of an SVG file, each as `[tag, attributes]`. */
function shapesIn(svg: string): [string, Record<string, string>][] {
  return [...svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1).matchAll(/<(\w+)([^>]*?)\/>/g)].map(
    ([, tag = "", text = ""]) => [
      tag,
      Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value])),
    ],
  );
}

/** Builds the console's pages into `folder`: hashed assets, the page that loads them, and both again in compressed form. */
export async function buildConsole(folder: string): Promise<void> {
  const assets = join(folder, "assets");
  const { metafile } = await build({
    entryPoints: [join(SOURCE, "main.tsx")],
    outdir: assets,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    plugins: [icons],
  });
  const [script, { cssBundle = "", imports = [] } = {}] =
    Object.entries(metafile.outputs).find(([, { entryPoint }]) =>
      entryPoint?.endsWith(`${basename(SOURCE)}/main.tsx`),
    ) ?? [];
  if (script === undefined) throw new Error("the console has no entry point");
  const addressOf = (path: string) => `/console/assets/${path.slice(assets.length + 1)}`;
  const early = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => addressOf(path));
  const head = [
    `<link rel="stylesheet" href="${addressOf(cssBundle)}">`,
    ...early.map((path) => `<link rel="modulepreload" href="${path}">`),
    `<script type="module" src="${addressOf(script)}"></script>`,
  ];
  const page = await readFile(join(SOURCE, "index.html"), "utf8");
  await mkdir(assets, { recursive: true });
  await writeFile(join(folder, "index.html"), page.replace("<!-- assets -->", head.join("\n    ")));
  const names = (await readdir(assets)).map((name) => join(assets, name));
  await Promise.all([join(folder, "index.html"), ...names].map(compress));
}

async function compress(file: string): Promise<void> {
  const bytes = await readFile(file);
  await writeFile(`${file}.gz`, gzipSync(bytes, { level: 9 }));
}
