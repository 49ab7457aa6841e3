import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { buildDocs } from "./build-docs.ts";
import { anchorOf } from "./docs/markdown.ts";

// Builds the documentation into dist/docs, and checks every link of the pages.
const pages = [
  ...readdirSync(".").filter((name) => name.endsWith(".md")),
  ...readdirSync("docs").map((name) => join("docs", name)),
  "generated/README.md",
].filter((name) => name.endsWith(".md"));

function textOf(page: string): string {
  return readFileSync(page, "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
}

function anchorsOf(page: string): Set<string> {
  return new Set([...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading as string)));
}

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

const site = await buildDocs("dist/docs").catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
const built = Object.keys(site).filter((path) => path.endsWith(".html")).length;
console.log(
  `${pages.length} pages of the project and ${built} of the site, every link leads somewhere; open dist/docs/index.html`,
);
