const MOST_LABEL_CHARS = 128;
const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const escaped = (text: string, signs: RegExp): string => text.replace(signs, (sign) => escapes[sign] ?? sign);

export const helpText = (help: string): string => escaped(help, /[\\\n]/g);

/** Whether a label's value is shown whole. */
export const fits = (value: string): boolean => value.length <= MOST_LABEL_CHARS;

export const labelText = (name: string, value: string): string =>
  `${name}="${escaped(value.slice(0, MOST_LABEL_CHARS), /["\\\n]/g)}"`;

const numberText = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";

/** One line of the text format. */
export const seriesLine = (name: string, labels: string, value: number): string =>
  `${name}${labels === "" ? "" : `{${labels}}`} ${numberText(value)}\n`;

/** What one series keeps, and how it is written. The hot path only adds to fields. */
export interface Cell {
  lines(name: string, labels: string): string;
}

export interface NumberCell extends Cell {
  value: number;
  inc(by?: number): void;
  set(value: number): void;
}

export const numberCell = (): NumberCell => {
  const cell: NumberCell = {
    value: 0,
    inc: (by = 1) => {
      cell.value += by;
    },
    set: (value) => {
      cell.value = value;
    },
    lines: (name, labels) => seriesLine(name, labels, cell.value),
  };
  return cell;
};

export interface HistogramCell extends Cell {
  observe(value: number): void;
}

/** A histogram over these upper bounds, which rise. A value on a bound counts below it, as `le` says. */
export const histogramCell = (bounds: readonly number[]): HistogramCell => {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  let sum = 0;
  return {
    observe: (value) => {
      let at = 0;
      while (at < bounds.length && value > (bounds[at] as number)) at++;
      counts[at] = (counts[at] as number) + 1;
      sum += value;
    },
    lines: (name, labels) => {
      const before = labels === "" ? "" : `${labels},`;
      let total = 0;
      let text = "";
      for (const [at, count] of counts.entries()) {
        total += count;
        const bound = numberText(bounds[at] ?? Number.POSITIVE_INFINITY);
        text += seriesLine(`${name}_bucket`, `${before}le="${bound}"`, total);
      }
      return text + seriesLine(`${name}_sum`, labels, sum) + seriesLine(`${name}_count`, labels, total);
    },
  };
};
