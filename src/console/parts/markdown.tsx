import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isSafeLink, MOST_MARKDOWN, PARSE, renderer, SANITISE } from "../lib/markdown.ts";
import "./markdown.css";

type Render = (text: string) => unknown;

/** Makes markup of Markdown, once both libraries have come. */
const render = signal<Render | undefined>(undefined);
let loading: Promise<void> | undefined;

const load = async (): Promise<void> => {
  const [{ Marked }, { default: purify }] = await Promise.all([import("marked"), import("dompurify")]);
  const marked = new Marked({ renderer });
  purify.addHook("afterSanitizeAttributes", (element) => {
    if (element.tagName === "A") {
      if (!isSafeLink(element.getAttribute("href") ?? "")) element.removeAttribute("href");
      element.setAttribute("rel", "noreferrer noopener");
      element.setAttribute("target", "_blank");
    }
    // What scrolls sideways can be reached by the keyboard.
    if (element.tagName === "PRE" || element.tagName === "TABLE") element.setAttribute("tabindex", "0");
  });
  render.value = (text) => purify.sanitize(marked.parse(text, PARSE), SANITISE);
};

/** Text from outside, as Markdown. It never becomes markup of its own; until the libraries have come, it is shown as it is. */
export const Markdown = ({ text }: { text: string }) => {
  const place = useRef<HTMLDivElement>(null);
  const isLong = text.length > MOST_MARKDOWN;
  const shown = isLong ? undefined : render.value;
  useEffect(() => {
    if (!isLong) loading ??= load().catch(() => (loading = undefined));
  }, [isLong]);
  useLayoutEffect(() => {
    // DOMPurify answers with a trusted type, the only thing that the page's policy takes here.
    if (shown && place.current) place.current.innerHTML = shown(text) as string;
  }, [shown, text]);
  return shown ? <div class="markdown" dir="auto" ref={place} /> : <Plain text={text} />;
};

/** Text from outside, exactly as it is. */
export const Plain = ({ text }: { text: string }) => (
  <div class="plain-text" dir="auto">
    {text}
  </div>
);
