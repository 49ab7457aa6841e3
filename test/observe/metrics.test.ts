import { describe, expect, it } from "vitest";
import { createLoopLag } from "#observe/loop-lag.ts";
import { createRegistry } from "#observe/metrics.ts";
import { registerProcessMetrics } from "#observe/process-metrics.ts";

it("writes the text format, help and type before the series", () => {
  const registry = createRegistry();
  const requests = registry.counter("requests_total", "Requests.", ["surface", "status"]);
  requests.at("rest", "2xx").inc();
  requests.at("rest", "2xx").inc(2);
  requests.at("rpc", "4xx").inc();
  registry.read("gauge", "sessions", "Sessions.", () => 7.5);
  expect(registry.text()).toBe(
    [
      "# HELP requests_total Requests.",
      "# TYPE requests_total counter",
      'requests_total{surface="rest",status="2xx"} 3',
      'requests_total{surface="rpc",status="4xx"} 1',
      "# HELP sessions Sessions.",
      "# TYPE sessions gauge",
      "sessions 7.5",
      "",
    ].join("\n"),
  );
});

it("escapes help and label values", () => {
  const registry = createRegistry();
  registry.counter("odd_total", 'A "quoted" \\ line\nbreak', ["text"]).at('a"b\\c\nd').inc();
  expect(registry.text()).toBe(
    '# HELP odd_total A "quoted" \\\\ line\\nbreak\n# TYPE odd_total counter\nodd_total{text="a\\"b\\\\c\\nd"} 1\n',
  );
});

it("counts a histogram's values up to and with each bound", () => {
  const registry = createRegistry();
  const seconds = registry.histogram("wait_seconds", "Waits.", ["agent"], [0.1, 0.5, 1]).at("main");
  for (const value of [0.05, 0.1, 0.3, 0.5, 2]) seconds.observe(value);
  expect(registry.text().split("\n").slice(2, -1)).toEqual([
    'wait_seconds_bucket{agent="main",le="0.1"} 2',
    'wait_seconds_bucket{agent="main",le="0.5"} 4',
    'wait_seconds_bucket{agent="main",le="1"} 4',
    'wait_seconds_bucket{agent="main",le="+Inf"} 5',
    'wait_seconds_sum{agent="main"} 2.95',
    'wait_seconds_count{agent="main"} 5',
  ]);
});

describe("above its number of label sets", () => {
  it("counts further ones together as other", () => {
    const registry = createRegistry({ maxLabelSets: 3 });
    const family = registry.counter("many_total", "Many.", ["a", "b"]);
    for (let n = 0; n < 1000; n++) family.at(`a${n}`, "b").inc();
    family.at("a1", "b").inc();
    const lines = registry.text().split("\n").slice(2, -1);
    expect(lines).toHaveLength(4);
    expect(lines).toContain('many_total{a="a1",b="b"} 2');
    expect(lines).toContain('many_total{a="other",b="other"} 997');
  });

  it("cuts long values, and counts values together that are equal after the cut", () => {
    const registry = createRegistry();
    const family = registry.counter("long_total", "Long.", ["a"]);
    for (let n = 0; n < 300; n++) family.at(`${"x".repeat(200)}${n}`).inc();
    expect(registry.text()).toContain(`long_total{a="${"x".repeat(128)}"} 300\n`);
  });
});

it("reads a value at each scrape, and omits a failing source or one without a value", () => {
  const registry = createRegistry();
  let queued = 1;
  registry.read("gauge", "queued", "Queued.", () => queued);
  registry.read("gauge", "absent", "Absent.", () => undefined);
  registry.read("gauge", "broken", "Broken.", () => {
    throw new Error("no");
  });
  registry.read("gauge", "by_agent", "By agent.", () => [
    { labels: { agent: "main" }, value: Number.POSITIVE_INFINITY },
  ]);
  expect(registry.text()).toContain("queued 1\n");
  queued = 2;
  expect(registry.text()).toContain("queued 2\n");
  expect(registry.text()).toContain('by_agent{agent="main"} +Inf\n');
  expect(registry.text()).not.toMatch(/absent|broken/);
});

it("refuses a duplicate name, and names that Prometheus does not accept", () => {
  const registry = createRegistry();
  registry.counter("once_total", "Once.");
  expect(registry.text()).toContain("once_total 0\n");
  expect(() => registry.counter("once_total", "Twice.")).toThrow("Registered twice: once_total");
  expect(() => registry.counter("1st", "Not a name.")).toThrow("1st");
  expect(() => registry.counter("odd_total", "Odd label.", ["a-b"])).toThrow("odd_total");
  expect(() => registry.histogram("le_seconds", "Taken label.", ["le"])).toThrow("le_seconds");
});

it("reports the resources of the process", () => {
  using lag = createLoopLag();
  const registry = createRegistry();
  registerProcessMetrics(registry, { version: "1.2.3", lag });
  const text = registry.text();
  expect(text).toContain(`gateway_build_info{version="1.2.3",node="${process.version}"} 1\n`);
  for (const name of ["process_resident_memory_bytes", "process_uptime_seconds", 'nodejs_heap_bytes{kind="used"}']) {
    expect(
      Number(
        text
          .split("\n")
          .find((line) => line.startsWith(`${name} `))
          ?.split(" ")
          .at(-1),
      ),
    ).toBeGreaterThan(0);
  }
  expect(text).toMatch(/nodejs_eventloop_lag_seconds\{quantile="0\.99"\} [\d.e-]+\n/);
});
