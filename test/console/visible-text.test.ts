import fc from "fast-check";
import { expect, it } from "vitest";
import { shownChildren, shownText } from "#console/lib/visible-text.ts";
import { piecesOf } from "#kit/visible.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
const STEERS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom("\x1b", "\x9b", "\u202e", "\u2066", "\r", "\r\n", "\0", "a", " ", "\n"), fc.string()),
});
type Mark = { sign: string };
function textIn(child: unknown): string {
  return Array.isArray(child) ? child.map(textIn).join("") : typeof child === "string" ? child : (child as Mark).sign;
}

it("every text of an element shows its control characters by name, and contains none", () => {
  fc.assert(
    fc.property(anyText, anyText, fc.boolean(), (one, other, isTextOnly) => {
      const shown = shownChildren([one, [other, one]], (sign): Mark => ({ sign }), isTextOnly);
      expect(textIn(shown)).toBe(shownText(one) + shownText(other) + shownText(one));
      expect(textIn(shown)).not.toMatch(STEERS);
    }),
  );
});

it("a text without such characters is unchanged, and so is a value that is not a text", () => {
  const children = ["שלום, é 😀\n\t", 7, null, [{ type: "b" }]];
  expect(shownChildren(children, () => "", false)).toBe(children);
  expect(piecesOf("a\u001b[1m")).toEqual([
    { text: "a", isSign: false },
    { text: "⟨U+001B⟩", isSign: true },
    { text: "[1m", isSign: false },
  ]);
});

it("the override of the writing direction is shown by name in its place", () => {
  expect(shownText("\u202egnp.exe")).toBe("⟨U+202E⟩gnp.exe");
  fc.assert(
    fc.property(anyText, (text) => {
      // Nothing else changes, and a second pass changes nothing.
      expect(shownText(text).replace(/⟨U\+[0-9A-F]{4}⟩/g, "")).toBe(
        text
          .replaceAll("\r\n", "\n")
          .replace(new RegExp(STEERS.source, "g"), "")
          .replace(/⟨U\+[0-9A-F]{4}⟩/g, ""),
      );
      expect(shownText(shownText(text))).toBe(shownText(text));
    }),
  );
});
