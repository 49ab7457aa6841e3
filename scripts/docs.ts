import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { reference } from "#generated/reference.js";

// Renders the reference of the contract into dist/docs, and holds every link of the pages to what is there.
const pages = [
  ...readdirSync(".").filter((name) => name.endsWith(".md")),
  ...readdirSync("docs").map((name) => join("docs", name)),
  "generated/README.md",
].filter((name) => name.endsWith(".md"));

/** A heading as it is linked to. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

const textOf = (page: string): string => readFileSync(page, "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");

const anchorsOf = (page: string): Set<string> =>
  new Set([...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading as string)));

const broken: string[] = [];
for (const page of pages) {
  for (const [, target = ""] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path = "", anchor] = target.split("#");
    const file = path === "" ? page : relative(".", join(dirname(page), path));
    if (!existsSync(file)) broken.push(`${page}: ${target} leads nowhere`);
    else if (anchor !== undefined && file.endsWith(".md") && !anchorsOf(file).has(anchor)) {
      broken.push(`${page}: ${file} has no heading #${anchor}`);
    }
  }
}
if (broken.length > 0) {
  console.error(`${broken.join("\n")}\nMend the links, then run: npm run docs`);
  process.exit(1);
}

mkdirSync("dist/docs", { recursive: true });
// Writes the pages that a gateway serves at /docs, for a web server of one's own.
writeFileSync("dist/docs/index.html", reference);
// --inlineBundle: without it the page loads a script from elsewhere.
const redocly = ["redocly", "build-docs", "generated/openapi.json", "--inlineBundle", "-o", "dist/docs/openapi.html"];
const { status, stdout, stderr } = spawnSync("npx", ["--no-install", ...redocly], { encoding: "utf8" });
if (status !== 0) {
  console.error(`${stdout}${stderr}\nThe reference cannot be rendered. Mend specs/, then run: npm run docs`);
  process.exit(1);
}
console.log(
  `${pages.length} pages, every link leads somewhere; the reference is in dist/docs: index.html, and Redocly's openapi.html`,
);
