import purify from "dompurify";
import { Marked } from "marked";
import { isSafeLink, PARSE, renderer, SANITISE } from "../lib/markdown.ts";

const marked = new Marked({ renderer });

purify.addHook("afterSanitizeAttributes", (element) => {
  if (element.tagName === "A") {
    if (!isSafeLink(element.getAttribute("href") ?? "")) element.removeAttribute("href");
    element.setAttribute("rel", "noreferrer noopener");
    element.setAttribute("target", "_blank");
  }
  // An element that scrolls sideways must be reachable by the keyboard.
  if (element.tagName === "PRE" || element.tagName === "TABLE") element.setAttribute("tabindex", "0");
});

/** Markdown as markup that cannot run: a trusted type, the only thing that the page's policy lets in. */
export const renderMarkdown = (text: string): unknown => purify.sanitize(marked.parse(text, PARSE), SANITISE);
