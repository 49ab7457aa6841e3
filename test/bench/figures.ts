/** One row of the table: what was measured, what it is compared with, and whether its gate holds. */
export type Figure = {
  gate: string;
  figure: string;
  /** The median of what was measured; undefined when it could not be. */
  value?: number;
  unit?: string;
  /** The median of the rounds' ratios, where the gate is one. */
  ratio?: number;
  /** What each round gave: ratios where there are some, else values. */
  rounds?: readonly number[];
  bound?: Bound;
  /** Undefined for a figure without a gate, and for one that could not be measured. */
  held?: boolean;
  /** What a reader has to know of the figure; why it could not be measured. */
  note?: string;
};

/** `what` says what the ratio is of: `x bare`. */
export type Bound = ({ atLeast: number } | { atMost: number }) & { what?: string };

export const median = (values: readonly number[]): number => {
  if (values.length === 0) throw new Error("a median needs a value");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
};

/** Round by round, as each was measured right beside the other; a median of quotients, not a quotient of medians. */
export const ratiosOf = (measured: readonly number[], compared: readonly number[]): number[] => {
  if (measured.length !== compared.length) throw new Error("a ratio needs as many rounds of both");
  return measured.map((value, round) => value / (compared[round] as number));
};

export const holds = (value: number, bound: Bound): boolean =>
  Number.isFinite(value) && ("atLeast" in bound ? value >= bound.atLeast : value <= bound.atMost);

/** A figure whose gate is on the value itself. */
export const measure = (
  rounds: readonly number[],
  { bound, ...row }: Pick<Figure, "gate" | "figure" | "unit" | "bound" | "note">,
): Figure => {
  const value = median(rounds);
  return { ...row, value, rounds, ...(bound && { bound, held: holds(value, bound) }) };
};

/** A figure whose gate is on its ratio to what it is compared with. */
export const compare = (
  measured: readonly number[],
  compared: readonly number[],
  { bound, ...row }: Pick<Figure, "gate" | "figure" | "unit" | "bound" | "note">,
): Figure => {
  const rounds = ratiosOf(measured, compared);
  const ratio = median(rounds);
  return { ...row, value: median(measured), ratio, rounds, ...(bound && { bound, held: holds(ratio, bound) }) };
};

export const unmeasured = (gate: string, figure: string, why: string): Figure => ({
  gate,
  figure,
  note: `not measured: ${why}`,
});
