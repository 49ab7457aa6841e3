import { createRequire } from "node:module";
import { Marked, type Token, type Tokens } from "marked";

/** The part of highlight.js that is used here: its own types would add those of the browser to every file. */
type Highlighter = {
  registerLanguage(name: string, language: unknown): void;
  registerAliases(aliases: string[], options: { languageName: string }): void;
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
};
const require = createRequire(import.meta.url);
const hljs: Highlighter = require("highlight.js/lib/core");
const LANGUAGES = ["bash", "dockerfile", "http", "ini", "javascript", "json", "nginx", "python", "typescript", "yaml"];
for (const name of LANGUAGES) hljs.registerLanguage(name, require(`highlight.js/lib/languages/${name}`));
hljs.registerAliases(["json5"], { languageName: "javascript" });

/** The languages of a group of tabs. Adjacent blocks that name one of them become a group. */
const TABS = ["curl", "TypeScript", "Python"];

export type Heading = { depth: number; text: string; id: string };
/** A part of a page in the search index: a heading of the first three levels, with the text below it. */
export type Part = { id: string; title: string; text: string };
export type Rendered = { html: string; headings: Heading[]; parts: Part[] };

type Tabs = { type: "tabs"; raw: string; blocks: Tokens.Code[] };

function cell(tag: string, html: string): string {
  return `<${tag}>${html}</${tag}>`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** A heading with the address of its link. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

const OWN_ID = /\s*\{#([^}]+)\}\s*$/;
/** The text without the addresses of its headings, which only the site uses. */
export function withoutIds(markdown: string): string {
  return markdown.replaceAll(/^(#+ .*?)\s*\{#[^}\n]+\}$/gm, "$1");
}

/**
 * A page as HTML. `linkOf` returns the target of a link on the site; undefined removes the link and leaves its text. The code of a section with a
 * heading `Examples` is placed next to its text.
 */
export function render(markdown: string, linkOf: (href: string) => string | undefined): Rendered {
  const headings: Heading[] = [];
  const parts: Part[] = [];
  const ids = new Map<string, number>();
  let groups = 0;

  const idOf = (text: string): string => {
    const own = OWN_ID.exec(text)?.[1] ?? anchorOf(text);
    const count = ids.get(own) ?? 0;
    ids.set(own, count + 1);
    return count === 0 ? own : `${own}-${count}`;
  };

  const marked = new Marked({
    extensions: [{ name: "tabs", renderer: (token) => tabsOf((token as Tabs).blocks) }],
    renderer: {
      heading({ depth, text, tokens }) {
        const id = idOf(text);
        const last = tokens.at(-1);
        if (last?.type === "text") last.text = last.raw = last.text.replace(OWN_ID, "");
        const words = this.parser.parseInline(tokens);
        headings.push({ depth, id, text: text.replace(OWN_ID, "").replaceAll("`", "") });
        const link = depth === 1 ? words : `<a href="#${escapeHtml(id)}">${words}</a>`;
        return `<h${depth} id="${escapeHtml(id)}">${link}</h${depth}>\n`;
      },
      code: (token) => codeOf(token),
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        const to = linkOf(href);
        return to === undefined ? words : `<a href="${escapeHtml(to)}">${words}</a>`;
      },
      image: ({ href, text }) =>
        `<img src="${escapeHtml(linkOf(href) ?? href)}" alt="${escapeHtml(text)}" loading="lazy">`,
      // The sign of a task list: an input would need a label, and store nothing.
      checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
      // Our pages contain no markup: comments are for their authors, and `<name>` is a word.
      html: ({ text }) => (text.trimStart().startsWith("<!--") ? "" : escapeHtml(text)),
      table(token) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map(({ text, tokens }) => cell(text === "" ? "td" : tag, this.parser.parseInline(tokens))).join("")}</tr>`;
        const isNamed = token.header.some(({ text }) => text !== "");
        const head = isNamed ? `<thead>${row(token.header, "th")}</thead>` : "";
        return `<div class="table" tabindex="0"><table>${head}<tbody>${token.rows.map((cells) => row(cells, "td")).join("\n")}</tbody></table></div>\n`;
      },
    },
  });

  const tabsOf = (blocks: readonly Tokens.Code[]): string => {
    const group = `tabs-${++groups}`;
    const shown = blocks.map((block, n) => {
      const tab = tabNameOf(block) as string;
      const id = `${group}-${n}`;
      return `<input type="radio" name="${group}" id="${id}" value="${tab}"${n === 0 ? " checked" : ""}><label for="${id}">${tab}</label>${codeOf(block)}`;
    });
    return `<div class="tabs">${shown.join("\n")}</div>\n`;
  };

  const tokens = withTabs(marked.lexer(markdown));
  collectParts(tokens, parts);
  const html = sectionsOf(tokens)
    .map(({ words, code }) => {
      const left = marked.parser(words);
      if (code.length === 0) return left;
      const [heading = "", ...others] = left.split(/(?<=<\/h3>\n)/);
      return `<section class="call">${heading}<div class="about">${others.join("")}</div>\n<div class="code">${marked.parser(code)}</div></section>\n`;
    })
    .join("");
  // The parts were found before the headings had addresses. Both are in the order of the page.
  const places = headings.filter(({ depth }) => depth < 4);
  return { html, headings, parts: parts.map((part, n) => ({ ...part, id: places[n]?.id ?? "" })) };
}

function tabNameOf(token: Token): string | undefined {
  const name = token.type === "code" ? (token as Tokens.Code).lang?.split(" ")[1] : undefined;
  return name !== undefined && TABS.includes(name) ? name : undefined;
}

/** The tokens, with adjacent code blocks of tabs joined into one. */
function withTabs(tokens: Token[]): Token[] {
  const found: Token[] = [];
  for (const token of tokens) {
    const last = found.at(-1) as Tabs | undefined;
    const name = tabNameOf(token);
    if (name === undefined) {
      if (token.type !== "space" || last?.type !== "tabs") found.push(token);
    } else if (last?.type === "tabs" && !last.blocks.some((block) => tabNameOf(block) === name))
      last.blocks.push(token as Tokens.Code);
    else found.push({ type: "tabs", raw: "", blocks: [token as Tokens.Code] } satisfies Tabs);
  }
  return found;
}

/** The page in sections: a heading of the third level starts one, and its examples are separate. */
function sectionsOf(tokens: Token[]): { words: Token[]; code: Token[] }[] {
  const sections = [{ words: [] as Token[], code: [] as Token[] }];
  let isCode = false;
  for (const token of tokens) {
    const depth = token.type === "heading" ? (token as Tokens.Heading).depth : 7;
    if (depth <= 3) {
      sections.push({ words: [], code: [] });
      isCode = false;
    }
    if (depth === 4) isCode = token.raw.trim() === "#### Examples";
    (sections.at(-1) as (typeof sections)[number])[isCode ? "code" : "words"].push(token);
  }
  return sections;
}

function collectParts(tokens: Token[], parts: Part[]): void {
  for (const token of tokens) {
    if (token.type === "heading" && token.depth < 4) {
      parts.push({ id: "", title: token.text.replace(OWN_ID, "").replaceAll("`", ""), text: "" });
    } else if (parts.length > 0 && token.type !== "tabs") {
      const part = parts.at(-1) as Part;
      part.text += ` ${token.type === "code" ? token.text : token.raw.replaceAll(/[`*|#]|\]\([^)]*\)|\[/g, " ")}`;
    }
  }
}

function codeOf({ text, lang = "" }: Pick<Tokens.Code, "text" | "lang">): string {
  const [language = "", name = ""] = lang.split(" ");
  const isKnown = hljs.getLanguage(language) !== undefined;
  const html = isKnown ? hljs.highlight(text, { language, ignoreIllegals: true }).value : escapeHtml(text);
  // A block may have the name of its file.
  const title = /\.\w+$/.test(name) ? `<figcaption>${escapeHtml(name)}</figcaption>` : "";
  return `<figure class="block">${title}<pre tabindex="0"><code>${html}</code></pre></figure>\n`;
}
