import purify from "dompurify";
import { Marked } from "marked";
import { isSafeLink, PARSE, renderer, SANITISE } from "../lib/markdown.ts";
import { shownText } from "../lib/visible-text.ts";

const marked = new Marked({ renderer });

purify.addHook("uponSanitizeElement", (node) => {
  if (node.nodeType === Node.TEXT_NODE) node.textContent = shownText(node.textContent ?? "");
});

purify.addHook("afterSanitizeAttributes", (element) => {
  const title = element.getAttribute("title");
  if (title !== null) element.setAttribute("title", shownText(title));
  if (element.tagName === "A") {
    if (!isSafeLink(element.getAttribute("href") ?? "")) element.removeAttribute("href");
    element.setAttribute("rel", "noreferrer noopener");
    element.setAttribute("target", "_blank");
  }
  // An element that scrolls sideways must be reachable by the keyboard.
  if (element.tagName === "PRE" || element.tagName === "TABLE") element.setAttribute("tabindex", "0");
});

/** Markdown as markup that cannot run: a trusted type, the only thing that the page's policy lets in. */
export function renderMarkdown(text: string): unknown {
  return purify.sanitize(marked.parse(text, PARSE), SANITISE);
}
