import { type Cell, fits, labelText } from "#observe/metric-cells.ts";

/** One metric with its labels. */
export interface Family<Label extends string, Series> {
  /** The series of these label values; it may be kept and used again. */
  bind(values: Readonly<Record<Label, string>>): Series;
  /** The same, with the values in the order in which the labels were declared. */
  at(...values: string[]): Series;
}

interface Needs<Label extends string, Series> {
  name: string;
  labels: readonly Label[];
  create: () => Series;
  maxLabelSets: number;
}

/** The series of one metric, at most `maxLabelSets` and one more, `other`, which counts what came after those. */
export const createFamily = <Label extends string, Series extends Cell>({
  name,
  labels,
  create,
  maxLabelSets,
}: Needs<Label, Series>): Family<Label, Series> & { lines(): string } => {
  if (labels.some((label) => !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label === "le")) {
    throw new Error(`Not a label's name in ${name}`);
  }
  const cells = new Map<string, Series>(); // by the labels' text
  const byValue = new Map<string, unknown>(); // a tree, one level a label: the hot path joins no strings
  const other = labels.map((label) => labelText(label, "other")).join(",");

  const cellOf = (text: string): Series => {
    const known = cells.get(text);
    if (known) return known;
    const cell = create();
    cells.set(text, cell);
    return cell;
  };

  const grow = (values: readonly string[]): Series => {
    const text = labels.map((label, at) => labelText(label, values[at] as string)).join(",");
    if (cells.size >= maxLabelSets && !cells.has(text)) return cellOf(other);
    const cell = cellOf(text);
    if (!values.every(fits)) return cell; // many values may be cut to this one: the tree would grow without end
    let level = byValue;
    for (const value of values.slice(0, -1)) {
      const next = (level.get(value) as Map<string, unknown> | undefined) ?? new Map<string, unknown>();
      level.set(value, next);
      level = next;
    }
    level.set(values.at(-1) as string, cell);
    return cell;
  };

  const only = labels.length === 0 ? cellOf("") : undefined;

  const at = (...values: string[]): Series => {
    if (only) return only;
    let node: unknown = byValue;
    for (let level = 0; level < labels.length; level++) {
      node = (node as Map<string, unknown>).get(values[level] as string);
      if (node === undefined) return grow(labels.map((_, label) => String(values[label] ?? "")));
    }
    return node as Series;
  };

  return {
    at,
    bind: (values) => at(...labels.map((label) => values[label])),
    lines: () => [...cells].map(([text, cell]) => cell.lines(name, text)).join(""),
  };
};
