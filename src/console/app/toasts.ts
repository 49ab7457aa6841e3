import { signal } from "@preact/signals";
import { visible } from "#kit/visible.ts";

type Toast = { id: number; text: string; tone: "ok" | "bad" };

export const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Shows a message in the corner for a few seconds. Screen readers read it. */
export function say(text: string, tone: Toast["tone"] = "ok"): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-2), { id, text, tone }];
  setTimeout(
    () => {
      toasts.value = toasts.value.filter((toast) => toast.id !== id);
    },
    tone === "bad" ? 8_000 : 3_500,
  );
}

/** Copies a text to the clipboard and shows a notice. Control characters are escaped, because the text may be pasted into a terminal. */
export async function copyText(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(visible(text));
    say(what);
  } catch {
    say("Copying failed. Select the text and copy it manually.", "bad");
  }
}
