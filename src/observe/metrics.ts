/** The media type of `registry.text()`. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** In seconds, from a quick call to a turn's deadline. */
export const DEFAULT_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600,
];

/** One metric with its labels. */
export interface Family<Series> {
  /** The series of these label values, in the order in which the labels were declared. It may be kept and used again. */
  at(...values: string[]): Series;
}

export interface Counter {
  inc(by?: number): void;
}
export interface Gauge extends Counter {
  set(value: number): void;
}
export interface Histogram {
  observe(value: number): void;
}

export interface Sample {
  labels?: Readonly<Record<string, string>>;
  value: number;
}
/** Read at each scrape; undefined leaves the metric out this time. */
export type ReadSamples = () => number | readonly Sample[] | undefined;

export interface Registry {
  counter(name: string, help: string, labels?: readonly string[]): Family<Counter>;
  gauge(name: string, help: string, labels?: readonly string[]): Family<Gauge>;
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Family<Histogram>;
  /** A counter or gauge whose value is kept elsewhere. */
  read(type: "counter" | "gauge", name: string, help: string, read: ReadSamples): void;
  /** All metrics in the Prometheus text format 0.0.4. */
  text(): string;
}

/** A registry of metrics. A family keeps at most `maxLabelSets` series; what comes later is counted together as `other`. */
export const createRegistry = ({ maxLabelSets = 200 } = {}): Registry => {
  const families = new Map<string, () => string>();

  const add = (name: string, help: string, type: string, body: () => string): void => {
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`Not a metric's name: ${name}`);
    if (families.has(name)) throw new Error(`Registered twice: ${name}`);
    const head = `# HELP ${name} ${escaped(help, /[\\\n]/g)}\n# TYPE ${name} ${type}\n`;
    families.set(name, () => {
      const lines = body();
      return lines === "" ? "" : head + lines;
    });
  };

  const family = <One extends Series>(
    type: string,
    name: string,
    help: string,
    labels: readonly string[],
    create: () => One,
  ): Family<One> => {
    if (labels.some((label) => !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label === "le"))
      throw new Error(`Not a label's name in ${name}`);
    const byText = new Map<string, One>();
    const byValues = new Map<string, One>();
    const seriesOf = (text: string): One => {
      const known = byText.get(text);
      if (known) return known;
      const series = create();
      byText.set(text, series);
      return series;
    };
    const at = (...values: string[]): One => {
      const key = values.join("\0");
      const known = byValues.get(key);
      if (known) return known;
      const text = labels.map((label, n) => labelText(label, values[n] ?? "")).join(",");
      if (byText.size >= maxLabelSets && !byText.has(text))
        return seriesOf(labels.map((label) => labelText(label, "other")).join(","));
      const series = seriesOf(text);
      // Many long values may be cut to the same one: the map would grow without end.
      if (key.length <= MOST_LABEL_CHARS) byValues.set(key, series);
      return series;
    };
    if (labels.length === 0) at();
    add(name, help, type, () => [...byText].map(([text, series]) => series.lines(name, text)).join(""));
    return { at };
  };

  return {
    counter: (name, help, labels = []) => family("counter", name, help, labels, () => new NumberSeries()),
    gauge: (name, help, labels = []) => family("gauge", name, help, labels, () => new NumberSeries()),
    histogram: (name, help, labels = [], buckets = DEFAULT_BUCKETS) =>
      family("histogram", name, help, labels, () => new HistogramSeries(buckets)),
    read: (type, name, help, source) => add(name, help, type, () => sampleLines(name, source)),
    text: () => [...families.values()].map((lines) => lines()).join(""),
  };
};

/** The values of one series, and the lines that show them. */
interface Series {
  lines(name: string, labels: string): string;
}

class NumberSeries implements Series, Gauge {
  #value = 0;

  inc(by = 1): void {
    this.#value += by;
  }

  set(value: number): void {
    this.#value = value;
  }

  lines(name: string, labels: string): string {
    return seriesLine(name, labels, this.#value);
  }
}

/** A histogram over these upper bounds, which rise. A value on a bound counts below it, as `le` says. */
class HistogramSeries implements Series, Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const at = found < 0 ? this.#bounds.length : found;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  lines(name: string, labels: string): string {
    const before = labels === "" ? "" : `${labels},`;
    let total = 0;
    let text = "";
    for (const [at, count] of this.#counts.entries()) {
      total += count;
      const bound = numberText(this.#bounds[at] ?? Number.POSITIVE_INFINITY);
      text += seriesLine(`${name}_bucket`, `${before}le="${bound}"`, total);
    }
    return text + seriesLine(`${name}_sum`, labels, this.#sum) + seriesLine(`${name}_count`, labels, total);
  }
}

const sampleLines = (name: string, source: ReadSamples): string => {
  try {
    const value = source();
    if (value === undefined) return "";
    if (typeof value === "number") return seriesLine(name, "", value);
    const textOf = ({ labels = {} }: Sample) => Object.entries(labels).map((label) => labelText(...label));
    return value.map((sample) => seriesLine(name, textOf(sample).join(","), sample.value)).join("");
  } catch {
    return ""; // one broken source must not hide all the others
  }
};

const MOST_LABEL_CHARS = 128;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const escaped = (text: string, signs: RegExp): string => text.replace(signs, (sign) => ESCAPES[sign] ?? sign);

const labelText = (name: string, value: string): string =>
  `${name}="${escaped(value.slice(0, MOST_LABEL_CHARS), /["\\\n]/g)}"`;

const numberText = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";

/** One line of the text format. */
const seriesLine = (name: string, labels: string, value: number): string =>
  `${name}${labels === "" ? "" : `{${labels}}`} ${numberText(value)}\n`;
