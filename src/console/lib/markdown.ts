import type { Config } from "dompurify";
import type { MarkedOptions, Tokens } from "marked";

/** Longer texts are shown as plain text: parsing them would block the page. */
export const MOST_MARKDOWN = 64 * 1024;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);
}

/** Says if a link may be followed: to a page or a mail address, and to nothing else. */
export function isSafeLink(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s]+$/i.test(href);
}

/** Markup in the text stays text, a picture becomes a link, and a link that may not be followed is its words. */
export const renderer = {
  html: ({ text }: Tokens.HTML | Tokens.Tag): string => escaped(text),
  image: ({ href, text }: Tokens.Image): string =>
    isSafeLink(href) ? `<a href="${escaped(href)}">${escaped(text || href)}</a>` : escaped(text || href),
  link(this: { parser: { parseInline: (tokens: Tokens.Generic[]) => string } }, { href, tokens }: Tokens.Link): string {
    const words = this.parser.parseInline(tokens);
    return isSafeLink(href) ? `<a href="${escaped(href)}">${words}</a>` : words;
  },
  checkbox: ({ checked }: Tokens.Checkbox): string => (checked ? "☑ " : "☐ "),
};

export const PARSE: MarkedOptions & { async: false } = { async: false, gfm: true, breaks: true };

const TAGS = "p br hr strong em del code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 table thead tbody tr th td";

/** The rules for the markup that Markdown becomes. */
export const SANITISE: Config & { RETURN_TRUSTED_TYPE: true } = {
  RETURN_TRUSTED_TYPE: true,
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "title", "align", "start"],
  FORBID_ATTR: ["style"],
  FORBID_TAGS: ["style", "img", "form"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};
