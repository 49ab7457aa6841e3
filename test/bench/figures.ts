import type { BenchOptions } from "./options.ts";

/** One row of the table: the figure, what it is compared with, and whether its gate is met. */
export type Figure = {
  gate: string;
  figure: string;
  /** The median of the values; undefined if it could not be measured. */
  value?: number;
  unit?: string;
  /** The median of the rounds' ratios, if the gate is a ratio. */
  ratio?: number;
  /** The ratios of the rounds, or their values. */
  rounds?: readonly number[];
  bound?: Bound;
  /** Undefined for a figure without a gate, and for one that could not be measured. */
  held?: boolean;
  /** A remark on the figure, or the reason why it was not measured. */
  note?: string;
};

/** `what` names the denominator of the ratio: `x bare`. */
export type Bound = ({ atLeast: number } | { atMost: number }) & { what?: string };

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("a median needs a value");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Round by round, with both values measured directly after each other; a median of quotients, not a quotient of medians. */
export function ratiosOf(measured: readonly number[], compared: readonly number[]): number[] {
  if (measured.length !== compared.length) throw new Error("a ratio needs as many rounds of both");
  return measured.map((value, round) => value / (compared[round] as number));
}

export function holds(value: number, bound: Bound): boolean {
  return Number.isFinite(value) && ("atLeast" in bound ? value >= bound.atLeast : value <= bound.atMost);
}

/** A figure with a gate for its value. */
export function measure(
  rounds: readonly number[],
  { bound, ...row }: Pick<Figure, "gate" | "figure" | "unit" | "bound" | "note">,
): Figure {
  const value = median(rounds);
  return { ...row, value, rounds, ...(bound && { bound, held: holds(value, bound) }) };
}

/** A figure with a gate for its ratio to another one. */
export function compare(
  measured: readonly number[],
  compared: readonly number[],
  { bound, ...row }: Pick<Figure, "gate" | "figure" | "unit" | "bound" | "note">,
): Figure {
  const rounds = ratiosOf(measured, compared);
  const ratio = median(rounds);
  return { ...row, value: median(measured), ratio, rounds, ...(bound && { bound, held: holds(ratio, bound) }) };
}

/** A gate, or a part of one, and its measurement. */
export type Gate = {
  gate: string;
  figure: string;
  /** The reason why it cannot be measured on this machine; undefined if it can. */
  lack?: (options: BenchOptions) => string | undefined;
  measure: (options: BenchOptions) => Promise<Figure[]>;
};

export function unmeasured(gate: string, figure: string, why: string): Figure {
  return {
    gate,
    figure,
    note: `not measured: ${why}`,
  };
}

const HEAD = ["gate", "figure", "measured", "ratio", "bound", "held"];

/** The table of figures; a figure's note is on the line below it. */
export function tableOf(figures: readonly Figure[]): string {
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
}

function cellsOf({ gate, figure, value, unit, ratio, bound, held }: Figure): string[] {
  return [
    gate,
    figure,
    value === undefined ? "-" : `${showNumber(value)}${unit === undefined ? "" : ` ${unit}`}`,
    ratio === undefined ? "" : ratio.toFixed(ratio < 10 ? 3 : 1),
    bound === undefined ? "" : showBound(bound),
    held === undefined ? "-" : held ? "yes" : "NO",
  ];
}

function showBound(bound: Bound): string {
  const limit = "atLeast" in bound ? `>= ${showNumber(bound.atLeast)}` : `<= ${showNumber(bound.atMost)}`;
  return bound.what === undefined ? limit : `${limit} ${bound.what}`;
}

/** Three significant digits, with separated thousands: `0.152`, `28.4`, `45 120`. */
export function showNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) || Math.abs(value) >= 100) {
    return Math.round(value)
      .toString()
      .replace(/\B(?=(\d{3})+$)/g, " ");
  }
  return Number(value.toPrecision(3)).toString();
}
