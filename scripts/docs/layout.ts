import { escapeHtml, type Heading, type Rendered } from "./markdown.ts";

/** The page for unknown addresses. It is not in the navigation, and has no Markdown form. */
export const MISSING = { name: "404", title: "Page not found", about: "There is no page at this address." };

export type Navigation = readonly {
  title: string;
  pages: readonly { name: string; title: string }[];
}[];

type Page = { name: string; title: string; about: string };
type Parts = { page: Page; rendered: Rendered; navigation: Navigation; version: string };

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%230B6F66'/%3E%3Cpath d='M4 8h8M8 4v8' stroke='white' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";

/** One page of the site: it needs no script, loads nothing from other hosts, and works as a local file. */
export function layout({ page, rendered, navigation, version }: Parts): string {
  const title = page.name === "index" ? "Agent Gateway" : `${page.title} · Agent Gateway`;
  const all = navigation.flatMap(({ pages }) => pages);
  const at = all.findIndex(({ name }) => name === page.name);
  const isMissing = page.name === MISSING.name;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escapeHtml(page.about)}">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="style.css">
${isMissing ? "" : `<link rel="alternate" type="text/markdown" href="${page.name}.md">\n`}<script src="site.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="index.html"><span aria-hidden="true"></span>Agent Gateway</a>
<search hidden><input type="search" placeholder="Search" aria-label="Search the documentation" aria-controls="found" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd><div id="found" role="region" aria-label="Search results" aria-live="polite" hidden></div></search>
<button type="button" class="theme" hidden>Theme</button>
</header>
<input type="checkbox" id="menu" aria-label="Show all pages"><label for="menu">All pages</label>
<nav class="pages" aria-label="All pages">
${navigation.map((group) => groupOf(group, page.name)).join("\n")}
</nav>
<main id="content">
<article>
${rendered.html}</article>
<footer>
${isMissing ? "" : `<nav class="steps" aria-label="The pages before and after">${stepOf("prev", all[at - 1])}${stepOf("next", all[at + 1])}</nav>\n`}<p>Agent Gateway ${escapeHtml(version)}${isMissing ? "" : ` · <a href="${page.name}.md">this page as Markdown</a>`}</p>
</footer>
</main>
${contentsOf(rendered.headings)}
</body>
</html>
`;
}

function groupOf({ title, pages }: Navigation[number], here: string): string {
  return `<b>${escapeHtml(title)}</b>
<ul>${pages
    .map(({ name, title }) => {
      const mark = name === here ? ' aria-current="page"' : "";
      return `<li><a href="${name}.html"${mark}>${escapeHtml(title)}</a></li>`;
    })
    .join("")}</ul>`;
}

function stepOf(rel: "prev" | "next", page: { name: string; title: string } | undefined): string {
  if (page === undefined) return "";
  return `<a rel="${rel}" href="${page.name}.html">${rel === "prev" ? "← " : ""}${escapeHtml(page.title)}${rel === "next" ? " →" : ""}</a>`;
}

/** The headings of a page, as a table of contents. Pages with few headings have none. */
function contentsOf(headings: readonly Heading[]): string {
  const shown = headings.filter(({ depth }) => depth === 2 || depth === 3);
  if (shown.length < 3) return "";
  const items = shown.map(
    ({ depth, id, text }) => `<li class="at-${depth}"><a href="#${escapeHtml(id)}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><b>On this page</b><ul>${items.join("")}</ul></nav>`;
}
