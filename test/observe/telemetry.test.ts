import { readFileSync } from "node:fs";
import { parser } from "@prometheus-io/lezer-promql";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "#config/load.ts";
import { BUILT, startGateway } from "#gateway/gateway.ts";
import { createLogger } from "#observe/logger.ts";
import type { Metric } from "#observe/metrics.ts";
import { DASHBOARD, metricsIn, RULES, telemetryFiles } from "../../scripts/telemetry/files.ts";

/** The labels that Prometheus adds, and those of metrics whose values are read at a scrape. */
const ADDED = ["job", "instance", "le"];
const OF_READ: Record<string, string[]> = {
  gateway_agent_rest_seconds: ["agent"],
  gateway_agent_paused: ["agent"],
  gateway_budget_used_ratio: ["budget"],
  gateway_budget_warn_ratio: ["budget"],
  gateway_cost_total: ["agent", "model"],
  gateway_endpoint_stopped: ["endpoint"],
  gateway_fullest_share_ratio: ["kind"],
  gateway_notifications_waiting: ["endpoint"],
  gateway_rest_keys_ending: ["state"],
  gateway_webhook_token_age_days: ["index", "name"],
  nodejs_eventloop_lag_seconds: ["quantile"],
  gateway_build_info: ["version", "node"],
};
const OF_PROMETHEUS = ["up"];

const metrics: readonly Metric[] = await (async () => {
  const loaded = await loadConfig({ env: {}, port: 0, built: BUILT });
  await using gateway = await startGateway({ loaded, logger: createLogger({ level: "error", format: "json" }) });
  return gateway.metrics;
})();

/** The error of an expression: its grammar, or an unknown metric or label. */
function faultsOf(expr: string): string[] {
  const faults: string[] = [];
  const named: string[] = [];
  const labels: string[] = [];
  // The variables of a dashboard are in the places of texts and durations.
  const text = expr.replaceAll("$__rate_interval", "5m");
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      const part = text.slice(from, to);
      if (type.isError) faults.push(`there is a mistake at ${from}: ${text.slice(from, from + 20)}`);
      if (type.name === "Identifier") named.push(part);
      if (type.name === "LabelName") labels.push(part);
    },
  });
  const bare = named.map((name) => name.replace(/_(?:bucket|sum|count)$/, ""));
  const found = metrics.filter(({ name }) => named.includes(name) || bare.includes(name));
  if (named.length === 0) faults.push("no metric is named");
  for (const name of named)
    if (!OF_PROMETHEUS.includes(name) && !found.some((one) => name.startsWith(one.name)))
      faults.push(`there is no ${name}`);
  const known = [...ADDED, ...found.flatMap(({ name, labels }) => labels ?? OF_READ[name] ?? [])];
  faults.push(...labels.filter((label) => !known.includes(label)).map((label) => `${named} has no label ${label}`));
  return faults;
}

type Rule = { alert: string; expr: string; annotations: Record<string, string> };
const { rules } = parse(readFileSync(RULES, "utf8")).groups[0] as { rules: Rule[] };
type Panel = { title: string; description?: string; targets?: { expr: string }[] };
const { panels } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as { panels: Panel[] };

describe("the dashboard and the alerts", () => {
  it("match the registry and scripts/telemetry (npm run telemetry writes them)", () => {
    for (const [file, text] of Object.entries(telemetryFiles(metrics)))
      expect(readFileSync(file, "utf8"), file).toBe(text);
  });

  it.each(rules.map(({ alert, expr }) => [alert, expr]))("%s uses existing metrics and labels", (_, expr) => {
    expect(faultsOf(expr)).toEqual([]);
  });

  const graphs = panels.filter(({ targets }) => targets);
  it.each(graphs.map(({ title, targets = [] }) => [title, targets]))("the panel %s does so, too", (_, targets) => {
    expect(targets.flatMap(({ expr }) => faultsOf(expr))).toEqual([]);
  });

  it("describe each panel by the help of its metric", () => {
    expect(graphs.length).toBeGreaterThan(20);
    expect(graphs.filter(({ description }) => !description).map(({ title }) => title)).toEqual([]);
  });

  it("have each name once", () => {
    const names = rules.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("the check of an expression", () => {
  it.each([
    ["sum(rate(gateway_requests_total[5m])", "there is a mistake"],
    ["gateway_request_total > 0", "there is no gateway_request_total"],
    ["sum by (agnet) (gateway_turns_total)", "has no label agnet"],
    ['gateway_turns_total{state="failed"}', "has no label state"],
  ])("finds the error of %s", (expr, words) => {
    expect(faultsOf(expr).join()).toContain(words);
  });

  it("distinguishes a metric from another one whose name starts in the same way", () => {
    expect(metricsIn("gateway_turns_started_total", metrics).map(({ name }) => name)).toEqual([
      "gateway_turns_started_total",
    ]);
  });
});
