import { readFileSync } from "node:fs";
import { stringify } from "yaml";
import type { Metric } from "#observe/metrics.ts";
import { ALERTS } from "./alerts.ts";
import { type Panel, ROWS } from "./panels.ts";

export const DASHBOARD = "docs/deploy/grafana-dashboard.json";
export const RULES = "docs/deploy/prometheus-alerts.yaml";
export const PAGE = "docs/operations.md";

/** The files that describe the metrics for tools and people, generated from the registry. */
export function telemetryFiles(metrics: readonly Metric[]): Record<string, string> {
  return {
    [DASHBOARD]: `${JSON.stringify(dashboard(metrics), null, 2)}\n`,
    [RULES]: rules(),
    [PAGE]: readFileSync(PAGE, "utf8").replace(
      /(<!-- alerts -->\n)[\s\S]*?(<!-- end of alerts -->)/,
      (_, begin: string, end: string) => `${begin}\n${alertTable()}\n\n${end}`,
    ),
  };
}

/** Every metric of the registry that an expression names. */
export function metricsIn(expr: string, metrics: readonly Metric[]): Metric[] {
  return metrics.filter(({ name }) => new RegExp(`\\b${name}(?:_bucket|_sum|_count)?\\b`).test(expr));
}

const SOURCE = { type: "prometheus", uid: "$source" };
const OF = 'job=~"$job", instance=~"$instance"';
const [COLUMNS, WIDTH, HEIGHT] = [24, 8, 8];

function dashboard(metrics: readonly Metric[]): object {
  const panels: object[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push({
      id: panels.length + 1,
      type: "row",
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    });
    y++;
    for (const [at, panel] of row.panels.entries()) {
      const x = (at * WIDTH) % COLUMNS;
      if (at > 0 && x === 0) y += HEIGHT;
      panels.push(graph(panel, panels.length + 1, { x, y, w: WIDTH, h: HEIGHT }, metrics));
    }
    y += HEIGHT;
  }
  return {
    uid: "agent-gateway",
    title: "Agent Gateway",
    tags: ["agent-gateway"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [
        { name: "source", label: "Data source", type: "datasource", query: "prometheus" },
        variable("job", "label_values(gateway_build_info, job)"),
        variable("instance", 'label_values(gateway_build_info{job=~"$job"}, instance)'),
      ],
    },
    panels,
  };
}

function variable(name: string, query: string): object {
  return {
    name,
    type: "query",
    datasource: SOURCE,
    query: { query, refId: name },
    refresh: 2,
    multi: true,
    includeAll: true,
    current: { text: "All", value: "$__all" },
  };
}

function graph(
  { title, unit = "short", lines }: Panel,
  id: number,
  gridPos: object,
  metrics: readonly Metric[],
): object {
  return {
    id,
    type: "timeseries",
    title,
    description: metricsIn(lines[0]?.[0] ?? "", metrics)[0]?.help ?? "",
    gridPos,
    datasource: SOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: lines.map(([expr, legendFormat], at) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + at),
      datasource: SOURCE,
      expr: expr.replaceAll("$of", OF),
      legendFormat,
    })),
  };
}

function rules(): string {
  return `# Alerts for Prometheus, with the job's name \`agent-gateway\`. docs/operations.md says what to do about each.\n${stringify(
    {
      groups: [
        {
          name: "agent-gateway",
          rules: ALERTS.map(({ name, expr, lasts, severity, meaning, remedy }) => ({
            alert: name,
            expr,
            for: lasts,
            labels: { severity },
            annotations: { summary: plain(meaning), description: plain(remedy) },
          })),
        },
      ],
    },
    { lineWidth: 0 },
  )}`;
}

/** Without the addresses of links, which have no target in a message. */
function plain(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1").replaceAll("`", "");
}

function alertTable(): string {
  return [
    "| alert | it means | what to do |",
    "|---|---|---|",
    ...ALERTS.map(({ name, severity, meaning, remedy }) => `| \`${name}\`, ${severity} | ${meaning} | ${remedy} |`),
  ].join("\n");
}
