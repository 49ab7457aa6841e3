import { readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import type { Contract } from "../generate/contract.ts";
import { object, text } from "../generate/json.ts";
import type { Row } from "./assets/search.ts";
import { layout, MISSING, type Navigation } from "./layout.ts";
import { type Part, type Rendered, render, withoutIds } from "./markdown.ts";
import { GROUPS, type PageGroup, PROJECT } from "./pages.ts";
import { referencePages } from "./reference/pages.ts";

/** The files of the site by their path. */
export type Site = Record<string, string | Buffer>;

/** The location of a section: the name and title of its page, and its group in the navigation. */
type Place = { page: string; on: string; group: string };
type Page = { name: string; title: string; about: string; markdown: string; source: string | undefined };

/** The complete site without its script: pages as HTML and as Markdown, pictures, and the indexes for the search and for language models. */
export function buildSite(contract: Contract): Site {
  const written = referencePages(contract);
  const version = text(object(contract.openapi.document.info).version);
  const groups = GROUPS.map(({ title, pages }) => ({ title, pages: pages.map((page) => readPage(page, written)) }));
  const pages = groups.flatMap((group) => group.pages);
  const names = new Map(pages.flatMap(({ source, name }) => (source === undefined ? [] : [[source, name] as const])));
  const navigation: Navigation = groups.map(({ title, pages }) => ({
    title,
    pages: pages.map(({ name, title }) => ({ name, title })),
  }));

  const site: Site = {};
  const found: (Part & Place)[] = [];
  for (const { group, page } of groups.flatMap(({ title, pages }) => pages.map((page) => ({ group: title, page })))) {
    const rendered: Rendered = render(page.markdown, (href) => linkOf(href, page, names));
    site[`${page.name}.html`] = layout({ page, rendered, navigation, version });
    site[`${page.name}.md`] = asMarkdown(page, names);
    found.push(...rendered.parts.map((part) => ({ ...part, page: page.name, on: page.title, group })));
  }
  site["404.html"] = layout({ page: MISSING, rendered: render(NO_PAGE, String), navigation, version });
  const shown = Object.values(site).flatMap((html) => [...String(html).matchAll(/src="images\/([^"]+)"/g)]);
  for (const [, name = ""] of shown) site[`images/${name}`] = readFileSync(join(IMAGES, name));
  site["style.css"] = STYLES.map((name) => readFileSync(join(import.meta.dirname, "assets", name), "utf8")).join("\n");
  site["search-index.js"] = `globalThis.docsIndex = ${JSON.stringify(found.map(indexed))};\n`;
  site["llms.txt"] = linksForModels(groups);
  return site;
}

const NO_PAGE = `# ${MISSING.title}

The documentation has no page at this address. Search for a word at the top of the page, choose one of the pages in the list, or begin with [the overview](index.html).
`;

const IMAGES = "docs/images";
/** The README's film is too large for the package. */
const FILM = /^!\[[^\]]*\]\(docs\/images\/tail\.webp\)\n\n/m;
/** The frame of a page, its text, and then calls with the rules for narrow, wide and printed pages. */
const STYLES = ["frame.css", "prose.css", "calls.css"];

function readPage({ name, source, title: short }: PageGroup["pages"][number], written: Record<string, string>): Page {
  const text = source === undefined ? (written[name] as string) : readFileSync(source, "utf8");
  const markdown = text.replace(FILM, "");
  const [, title = name] = /^# (.+)$/m.exec(markdown) ?? [];
  return { name, title: short ?? title, about: firstSentence(markdown), markdown, source };
}

/** The first sentence below the title, without its markup. */
function firstSentence(markdown: string): string {
  const [, paragraph = ""] = /^# .+\n+(?:<!--[\s\S]*?-->\n+)?([^#\n][\s\S]*?)(?:\n\n|$)/m.exec(markdown) ?? [];
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");
  return (/^[\s\S]*?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain).replaceAll(/\s+/g, " ").replace(/:$/, ".");
}

/** The file of the project that a link of a page leads to, and its anchor. */
function targetOf(href: string, source: string): { file: string; anchor: string } {
  const [path = "", anchor = ""] = href.split("#");
  return { file: path === "" ? source : normalize(join(dirname(source), path)), anchor };
}

/** The target of a link on the site; undefined if it is a file of the project that is not a page. */
function linkOf(href: string, { source }: Page, names: ReadonlyMap<string, string>): string | undefined {
  if (/^[a-z]+:/.test(href) || href.startsWith("#") || source === undefined) return href;
  const { file, anchor } = targetOf(href, source);
  if (file.startsWith(`${IMAGES}/`)) return `images/${basename(file)}`;
  const name = names.get(file);
  return name === undefined ? undefined : `${name}.html${anchor === "" ? "" : `#${anchor}`}`;
}

/** A page as Markdown, with links to the Markdown of the other pages. */
function asMarkdown(page: Page, names: ReadonlyMap<string, string>): string {
  const linked = page.markdown.replaceAll(/(?<!`)\]\(([^)\s]+)\)/g, (whole, href: string) => {
    const to = linkOf(href, page, names);
    return to === undefined ? whole : `](${to.replace(/^([\w.-]+)\.html/, "$1.md")})`;
  });
  return `${withoutIds(linked).trimEnd()}\n`;
}

/** The weight of a result: guides rank before the configuration and the reference, and the project's own pages last. */
const GROUP_WEIGHTS: Record<string, number> = { Reference: 0.3, [PROJECT]: 0.05 };
const PAGE_WEIGHTS: Record<string, number> = { index: 0.5, cli: 0.6, configuration: 0.85 };
/** A shape of the contract, by its address. */
const SHAPE = /^(http|rpc|push)-/;
function weightOf({ page, id, group }: Part & Place): number {
  return SHAPE.test(id) ? 0.1 : (PAGE_WEIGHTS[page] ?? GROUP_WEIGHTS[group] ?? 1);
}

const WORDS = { guide: 4_000, other: 600 };
/** A section in the search index: its address, its titles, the beginning of its text, and its weight. */
function indexed(part: Part & Place): Row {
  const words = part.text.replaceAll(/\s+/g, " ").trim();
  const length = part.group in GROUP_WEIGHTS ? WORDS.other : WORDS.guide;
  return [`${part.page}.html#${part.id}`, part.title, part.on, words.slice(0, length), weightOf(part)];
}

function linksForModels(groups: readonly { title: string; pages: readonly Page[] }[]): string {
  return `# Agent Gateway

> The door between other systems and conversational agents: REST, JSON-RPC 2.0 and webhooks over one contract, in one small process.

Every page is also available as Markdown. A running gateway serves the pages above "${PROJECT}" as one text at \`/docs/llms-full.txt\`, and the contract at \`/openapi.json\` and \`/openrpc.json\`.

${groups
  .map(
    ({ title, pages }) =>
      `## ${title}\n\n${pages.map(({ name, title, about }) => `- [${title}](${name}.md): ${about}`).join("\n")}`,
  )
  .join("\n\n")}
`;
}
