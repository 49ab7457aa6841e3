import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { MOST_MARKDOWN } from "../lib/markdown.ts";
import "./markdown.css";

/** Renders Markdown, once the libraries have loaded. */
const render = signal<((text: string) => unknown) | undefined>(undefined);
let isLoading = false;

async function load(): Promise<void> {
  if (isLoading || render.peek()) return;
  isLoading = true;
  try {
    const { renderMarkdown } = await import("./render-markdown.ts");
    render.value = renderMarkdown;
  } catch {
    // It stays plain text; the next one tries again.
  } finally {
    isLoading = false;
  }
}

/** Text from outside, as Markdown. It never becomes markup itself; until the libraries have loaded, it is shown as text. */
export function Markdown({ text }: { text: string }) {
  const place = useRef<HTMLDivElement>(null);
  const isLong = text.length > MOST_MARKDOWN;
  const shown = isLong ? undefined : render.value;
  useEffect(() => {
    if (!isLong) void load();
  }, [isLong]);
  useLayoutEffect(() => {
    if (shown && place.current) place.current.innerHTML = shown(text) as string;
  }, [shown, text]);
  return shown ? <div class="markdown" dir="auto" ref={place} /> : <Plain text={text} />;
}

/** Text from outside, exactly as received. */
export function Plain({ text }: { text: string }) {
  return (
    <div class="plain-text" dir="auto">
      {text}
    </div>
  );
}
