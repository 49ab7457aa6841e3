import type { Bound, Figure } from "./figures.ts";

const HEAD = ["gate", "figure", "measured", "ratio", "bound", "held"];

/** The figures as people read them; a figure's note stands in the line below it. */
export const tableOf = (figures: readonly Figure[]): string => {
  const rows = figures.map(cellsOf);
  const widths = HEAD.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join("  ")
      .trimEnd();
  const indent = " ".repeat((widths[0] as number) + 2);
  const rule = widths.map((width) => "-".repeat(width));
  const body = figures.flatMap(({ note }, at) => {
    const row = line(rows[at] as string[]);
    return note === undefined ? [row] : [row, `${indent}${note}`];
  });
  return `${[line(HEAD), line(rule), ...body].join("\n")}\n`;
};

const cellsOf = ({ gate, figure, value, unit, ratio, bound, held }: Figure): string[] => [
  gate,
  figure,
  value === undefined ? "-" : `${showNumber(value)}${unit === undefined ? "" : ` ${unit}`}`,
  ratio === undefined ? "" : ratio.toFixed(ratio < 10 ? 3 : 1),
  bound === undefined ? "" : showBound(bound),
  held === undefined ? "-" : held ? "yes" : "NO",
];

const showBound = (bound: Bound): string => {
  const limit = "atLeast" in bound ? `>= ${showNumber(bound.atLeast)}` : `<= ${showNumber(bound.atMost)}`;
  return bound.what === undefined ? limit : `${limit} ${bound.what}`;
};

/** Three digits that count, and thousands apart: `0.152`, `28.4`, `45 120`. */
export const showNumber = (value: number): string => {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) || Math.abs(value) >= 100) {
    return Math.round(value)
      .toString()
      .replace(/\B(?=(\d{3})+$)/g, " ");
  }
  return Number(value.toPrecision(3)).toString();
};
