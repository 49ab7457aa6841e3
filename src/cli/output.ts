import { visible, visibleLine } from "#kit/visible.ts";
import { print, say, styled } from "./terminal.ts";
import { asTyped } from "./typed.ts";

/** The output of a command: for people, as JSON, or only ids. */
export type OutputOptions = { json?: boolean; quiet?: boolean };

type Column<Item> = { title: string; of: (item: Item) => string | number | null | undefined; right?: boolean };

type List<Item> = {
  items: readonly Item[];
  id: (item: Item) => string;
  columns: readonly Column<Item>[];
  /** Printed in place of an empty table. */
  none: string;
  /** The cursor of the next page. */
  next?: string | null | undefined;
};

/** Prints a list: a table, the reply as JSON, or an id a line. */
export function printList<Item>(
  { json, quiet }: OutputOptions,
  reply: object,
  { items, id, columns, none, next }: List<Item>,
): void {
  if (json) print(JSON.stringify(reply, null, 2));
  else if (quiet) for (const item of items) print(visibleLine(id(item)));
  else if (items.length === 0) say(asTyped(none));
  else print(table(items, columns));
  if (next && !json) say(`There are more: --cursor ${oneLine(next)}`);
}

/** Prints one thing: in words, as JSON, or its id. */
export function printItem({ json, quiet }: OutputOptions, item: unknown, id: string, words: () => string): void {
  if (json) print(JSON.stringify(item, null, 2));
  else print(quiet ? visibleLine(id) : words());
}

function table<Item>(items: readonly Item[], columns: readonly Column<Item>[]): string {
  const rows = items.map((item) => columns.map(({ of }) => oneLine(String(of(item) ?? "–"))));
  const widths = columns.map(({ title }, n) => Math.max(widthOf(title), ...rows.map((row) => widthOf(row[n] ?? ""))));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, n) => {
        const room = " ".repeat((widths[n] ?? 0) - widthOf(cell));
        return columns[n]?.right ? room + cell : cell + room;
      })
      .join("  ")
      .trimEnd();
  return [styled("bold", line(columns.map(({ title }) => title))), ...rows.map(line)].join("\n");
}

/** Names and values under each other, the values in one column. Undefined values are left out. */
export function fields(pairs: Record<string, string | number | null | undefined>): string {
  const entries = Object.entries(pairs).filter(([, value]) => value !== undefined);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(([name, value]) => `${styled("dim", name.padEnd(width))}  ${oneLine(String(value ?? "–"))}`)
    .join("\n");
}

/** Foreign text in one printable line. */
export function oneLine(text: string): string {
  return visible(text.replace(/\s+/g, " ").trim());
}

/** Cuts a text to a width. */
export function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

const WIDE =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]/u;

/** The columns of a text on a terminal: wide characters need two. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}
