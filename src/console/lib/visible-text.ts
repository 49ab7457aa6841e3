import { piecesOf } from "#kit/visible.ts";

/** A text with its control characters named. */
export function shownText(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join("");
}

/**
 * The children of an element, in which `mark` replaces each control character by its name; in an element that contains only text, as
 * text. The same value if there are none.
 */
export function shownChildren(child: unknown, mark: (sign: string) => unknown, isTextOnly: boolean): unknown {
  if (Array.isArray(child)) {
    const all = child.map((one: unknown) => shownChildren(one, mark, isTextOnly));
    return all.every((one, n) => one === child[n]) ? child : all;
  }
  if (typeof child !== "string") return child;
  const pieces = piecesOf(child);
  if (pieces.length === 1 && !pieces[0]?.isSign) return pieces[0]?.text;
  if (isTextOnly) return shownText(child);
  return pieces.map(({ text, isSign }) => (isSign ? mark(text) : text));
}
