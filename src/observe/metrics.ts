import {
  type Cell,
  type HistogramCell,
  helpText,
  histogramCell,
  labelText,
  type NumberCell,
  numberCell,
  seriesLine,
} from "#observe/metric-cells.ts";
import { createFamily, type Family } from "#observe/metric-family.ts";

/** The media type of `registry.text()`. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** In seconds, from a quick call to a turn's deadline. */
export const DEFAULT_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600,
];

/** A bound series: its methods are plain additions to fields. */
export type Counter = Pick<NumberCell, "inc">;
export type Gauge = Pick<NumberCell, "inc" | "set">;
export type Histogram = Pick<HistogramCell, "observe">;

export interface Sample {
  labels?: Readonly<Record<string, string>>;
  value: number;
}
/** Read at each scrape; undefined leaves the metric out this time. */
export type Read = () => number | readonly Sample[] | undefined;

export interface Registry {
  counter<Label extends string = never>(name: string, help: string, labels?: readonly Label[]): Family<Label, Counter>;
  gauge<Label extends string = never>(name: string, help: string, labels?: readonly Label[]): Family<Label, Gauge>;
  histogram<Label extends string = never>(
    name: string,
    help: string,
    labels?: readonly Label[],
    buckets?: readonly number[],
  ): Family<Label, Histogram>;
  /** A counter or gauge whose value is kept elsewhere. */
  read(type: "counter" | "gauge", name: string, help: string, read: Read): void;
  /** All metrics in the Prometheus text format 0.0.4. */
  text(): string;
}

/** A registry of metrics. A family keeps at most `maxLabelSets` series; what comes later is counted together as `other`. */
export const createRegistry = ({ maxLabelSets = 200 } = {}): Registry => {
  const families = new Map<string, () => string>();

  const add = (name: string, help: string, type: string, body: () => string): void => {
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`Not a metric's name: ${name}`);
    if (families.has(name)) throw new Error(`Registered twice: ${name}`);
    const head = `# HELP ${name} ${helpText(help)}\n# TYPE ${name} ${type}\n`;
    families.set(name, () => {
      const lines = body();
      return lines === "" ? "" : head + lines;
    });
  };

  const family = <Label extends string, Series extends Cell>(
    type: string,
    name: string,
    help: string,
    labels: readonly Label[],
    create: () => Series,
  ): Family<Label, Series> => {
    const { lines, ...family } = createFamily({ name, labels, create, maxLabelSets });
    add(name, help, type, lines);
    return family;
  };

  const read = (source: Read, name: string): string => {
    try {
      const value = source();
      if (value === undefined) return "";
      if (typeof value === "number") return seriesLine(name, "", value);
      const textOf = ({ labels = {} }: Sample) =>
        Object.entries(labels)
          .map(([label, text]) => labelText(label, text))
          .join(",");
      return value.map((sample) => seriesLine(name, textOf(sample), sample.value)).join("");
    } catch {
      return ""; // one broken source must not hide all the others
    }
  };

  return {
    counter: (name, help, labels = []) => family("counter", name, help, labels, numberCell),
    gauge: (name, help, labels = []) => family("gauge", name, help, labels, numberCell),
    histogram: (name, help, labels = [], buckets = DEFAULT_BUCKETS) =>
      family("histogram", name, help, labels, () => histogramCell(buckets)),
    read: (type, name, help, source) => add(name, help, type, () => read(source, name)),
    text: () => [...families.values()].map((lines) => lines()).join(""),
  };
};
