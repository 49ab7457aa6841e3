/** The media type of `registry.text()`. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** In seconds, from a quick call to a turn's deadline. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600];

/** One metric with its labels. */
interface Family<One> {
  /** The series of these label values, in the order in which the labels were declared. */
  at(...values: string[]): One;
}

type Sample = { labels: Readonly<Record<string, string>>; value: number };
/** Read at each scrape; undefined leaves the metric out this time. */
type ReadSamples = () => number | readonly Sample[] | undefined;

/** The series of a family, in a tree by the values of their labels. */
type Branch<One> = { series: One | undefined; readonly next: Map<string, Branch<One>> };

/** The values of one series, and the lines that show them. */
interface Series {
  lines(name: string, labels: string): string;
}

/** A metric as it was declared. The labels of one that is read are known with its samples. */
export type Metric = { name: string; help: string; type: string; labels: readonly string[] | undefined };

export type Registry = ReturnType<typeof createRegistry>;

/** A registry of metrics. A family has at most `maxLabelSets` series; later ones are counted together as `other`. */
export function createRegistry({ maxLabelSets = 200 } = {}) {
  const families = new Map<string, Metric & { text: () => string }>();
  const preparations: (() => Promise<void>)[] = [];

  const add = (name: string, help: string, type: string, body: () => string, labels?: readonly string[]): void => {
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`Not a metric's name: ${name}`);
    if (families.has(name)) throw new Error(`Registered twice: ${name}`);
    const head = `# HELP ${name} ${escaped(help, /[\\\n]/g)}\n# TYPE ${name} ${type}\n`;
    const text = () => {
      const lines = body();
      return lines === "" ? "" : head + lines;
    };
    families.set(name, { name, help, type, labels, text });
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
    const all: { labels: string; series: One }[] = [];
    const tree: Branch<One> = { series: undefined, next: new Map() };
    const find = (values: readonly string[]): One | undefined => {
      let branch: Branch<One> | undefined = tree;
      for (const value of values) branch = branch?.next.get(value);
      return branch?.series;
    };
    const begin = (values: readonly string[]): One => {
      let branch = tree;
      for (const value of values) {
        const next = branch.next.get(value) ?? { series: undefined, next: new Map() };
        branch.next.set(value, next);
        branch = next;
      }
      const series = create();
      branch.series = series;
      all.push({ series, labels: labels.map((label, n) => labelText(label, values[n] ?? "")).join(",") });
      return series;
    };
    const findOrBegin = (values: readonly string[]): One => {
      const cut = values.map((value) => String(value).slice(0, MOST_LABEL_CHARS));
      const known = find(cut);
      if (known || all.length < maxLabelSets) return known ?? begin(cut);
      const others = labels.map(() => "other");
      return find(others) ?? begin(others);
    };
    const at = (...values: string[]): One => find(values) ?? findOrBegin(values);
    if (labels.length === 0) at();
    const lines = () => all.map(({ labels, series }) => series.lines(name, labels)).join("");
    add(name, help, type, lines, labels);
    return { at };
  };

  const text = (): string => [...families.values()].map(({ text }) => text()).join("");

  return {
    counter: (name: string, help: string, labels: readonly string[] = []) =>
      family("counter", name, help, labels, () => new Counter()),
    histogram: (name: string, help: string, labels: readonly string[] = [], buckets: readonly number[] = BUCKETS) =>
      family("histogram", name, help, labels, () => new Histogram(buckets)),
    /** A counter or gauge whose value is stored elsewhere. */
    read: (type: "counter" | "gauge", name: string, help: string, read: ReadSamples): void =>
      add(name, help, type, () => sampleLines(name, read)),
    /** Calls `prepare`, which never fails, before each scrape. */
    beforeScrape: (prepare: () => Promise<void>): void => void preparations.push(prepare),
    /** All metrics in the Prometheus text format 0.0.4. */
    scrape: async (): Promise<string> => {
      await Promise.all(preparations.map((prepare) => prepare()));
      return text();
    },
    /** The same with the values that are there. */
    text,
    /** Every metric, also those without a value yet. */
    list: (): readonly Metric[] => [...families.values()],
  };
}

class Counter implements Series {
  #value = 0;

  inc(by = 1): void {
    this.#value += by;
  }

  lines(name: string, labels: string): string {
    return seriesLine(name, labels, this.#value);
  }
}

/** A histogram over these upper bounds, which rise. A value on a bound counts below it, as `le` says. */
class Histogram implements Series {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY];
    this.#counts = this.#bounds.map(() => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (value > (this.#bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  lines(name: string, labels: string): string {
    const before = labels === "" ? "" : `${labels},`;
    let total = 0;
    const buckets = this.#counts.map((count, at) => {
      total += count;
      return seriesLine(`${name}_bucket`, `${before}le="${numberText(this.#bounds[at] as number)}"`, total);
    });
    return buckets.join("") + seriesLine(`${name}_sum`, labels, this.#sum) + seriesLine(`${name}_count`, labels, total);
  }
}

function sampleLines(name: string, read: ReadSamples): string {
  try {
    const value = read() ?? [];
    if (typeof value === "number") return seriesLine(name, "", value);
    const textOf = (labels: Sample["labels"]) => Object.entries(labels).map((label) => labelText(...label));
    return value.map((sample) => seriesLine(name, textOf(sample.labels).join(","), sample.value)).join("");
  } catch {
    return ""; // one broken source must not hide all the others
  }
}

const MOST_LABEL_CHARS = 128;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
function escaped(text: string, signs: RegExp): string {
  return text.replace(signs, (sign) => ESCAPES[sign] ?? sign);
}

function labelText(name: string, value: string): string {
  return `${name}="${escaped(value.slice(0, MOST_LABEL_CHARS), /["\\\n]/g)}"`;
}

function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}

/** One line of the text format. */
function seriesLine(name: string, labels: string, value: number): string {
  return `${name}${labels === "" ? "" : `{${labels}}`} ${numberText(value)}\n`;
}
