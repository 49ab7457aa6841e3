import { piecesOf } from "#kit/visible.ts";

/**
 * The children of an element with the control characters in their texts escaped, each by `mark`; in an element of text only, as text. The same
 * value where there are none.
 */
export function shownChildren(child: unknown, mark: (sign: string) => unknown, isTextOnly: boolean): unknown {
  if (Array.isArray(child)) {
    const all = child.map((one: unknown) => shownChildren(one, mark, isTextOnly));
    return all.every((one, n) => one === child[n]) ? child : all;
  }
  if (typeof child !== "string") return child;
  const pieces = piecesOf(child);
  if (pieces.length === 1 && !pieces[0]?.isSign) return pieces[0]?.text;
  if (isTextOnly) return pieces.map(({ text }) => text).join("");
  return pieces.map(({ text, isSign }) => (isSign ? mark(text) : text));
}
