import { useEffect, useRef } from "preact/hooks";

type Clean = (text: string) => string;

let cleaner: Promise<Clean> | undefined;

/** Markdown as markup that cannot run: the library's output goes through DOMPurify, whose policy is the only one that the page allows. */
const loadCleaner = (): Promise<Clean> => {
  cleaner ??= Promise.all([import("marked"), import("dompurify")]).then(([{ Marked }, { default: purify }]) => {
    const marked = new Marked({ gfm: true, breaks: true });
    purify.addHook("afterSanitizeAttributes", (node) => {
      if (node.tagName !== "A") return;
      if (!/^(https?:|mailto:)/i.test(node.getAttribute("href") ?? "")) node.removeAttribute("href");
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noreferrer noopener");
    });
    return (text) =>
      purify.sanitize(marked.parse(text, { async: false }), {
        RETURN_TRUSTED_TYPE: true,
        FORBID_ATTR: ["style", "class", "id", "name"],
        FORBID_TAGS: ["style", "img", "form", "input", "button", "video", "audio", "svg", "math"],
        ALLOW_DATA_ATTR: false,
      }) as unknown as string;
  });
  return cleaner;
};

/** Longer texts are shown as they are: nobody reads them as a page, and parsing them would hold the tab. */
const MOST = 100_000;

/** A text that may be Markdown. It is plain until the parts that render it are there. */
export const Markdown = ({ text }: { text: string }) => {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isGone = false;
    if (place.current) place.current.textContent = text;
    if (text.length <= MOST)
      loadCleaner().then(
        (clean) => {
          if (!isGone && place.current) place.current.innerHTML = clean(text);
        },
        // Without the parts that render it, it stays plain.
        () => {},
      );
    return () => {
      isGone = true;
    };
  }, [text]);
  return <div class="markdown" ref={place} dir="auto" />;
};
