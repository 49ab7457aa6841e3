type Sample = { name: string; labels: Record<string, string>; value: number };

const SAMPLE =
  /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|\+Inf|NaN)$/;

/** Reads the Prometheus text format, version 0.0.4, strictly: throws at anything else. */
export function readExposition(text: string): Sample[] {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const types = new Map<string, string>();
  const seen = new Set<string>();
  const samples: Sample[] = [];
  for (const line of text.split("\n").slice(0, -1)) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === "TYPE") {
      if (types.has(name) || !/^(counter|gauge|histogram|summary|untyped)$/.test(rest)) throw new Error(line);
      types.set(name, rest);
    }
    if (kind) continue;
    const [, sample = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    const family = types.has(sample) ? sample : sample.replace(/_(bucket|sum|count)$/, "");
    const series = `${sample}{${labels}}`;
    if (!types.has(family) || seen.has(series)) throw new Error(`${line}: no sample, of no type, or there twice`);
    if (family !== sample && types.get(family) !== "histogram") throw new Error(`${line}: not of a histogram`);
    seen.add(series);
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
    samples.push({ name: sample, labels: Object.fromEntries(pairs), value: Number(value.replace("Inf", "Infinity")) });
  }
  return samples;
}

/** The value of the only series with these labels. */
export function readSeries(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number {
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
  );
  if (found.length !== 1) throw new Error(`${found.length} series are ${name} with ${JSON.stringify(labels)}`);
  return (found[0] as Sample).value;
}
