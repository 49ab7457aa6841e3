/** A panel: its lines, each a query in PromQL with a legend. Its description is the help of its first metric. */
export type Panel = { title: string; unit?: string; lines: readonly (readonly [expr: string, legend: string])[] };

function quantiles(metric: string, by: string, legend: string): Panel["lines"] {
  return [0.5, 0.95, 0.99].map((quantile) => [
    `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${metric}_bucket{$of}[$__rate_interval])))`,
    `${legend} p${quantile * 100}`,
  ]);
}
function rate(metric: string, by: string): Panel["lines"] {
  return [
    [
      `sum by (${by}) (rate(${metric}{$of}[$__rate_interval]))`,
      by
        .split(", ")
        .map((label) => `{{${label}}}`)
        .join(" "),
    ],
  ];
}
function value(metric: string, legend = "{{instance}}"): Panel["lines"] {
  return [[`${metric}{$of}`, legend]];
}

/** The rows of the dashboard. `$of` is replaced by the selected gateways. */
export const ROWS: readonly { title: string; panels: readonly Panel[] }[] = [
  {
    title: "Requests",
    panels: [
      { title: "Answers", unit: "reqps", lines: rate("gateway_requests_total", "surface, status") },
      {
        title: "Time to answer",
        unit: "s",
        lines: quantiles("gateway_request_duration_seconds", "surface", "{{surface}}"),
      },
      { title: "Errors", unit: "reqps", lines: rate("gateway_errors_total", "surface, error") },
      { title: "Wrong tokens", unit: "reqps", lines: rate("gateway_auth_failures_total", "surface") },
      { title: "Refused work", unit: "ops", lines: rate("gateway_work_refused_total", "reason") },
      { title: "Open WebSockets", lines: value("gateway_sockets_open") },
    ],
  },
  {
    title: "Turns",
    panels: [
      { title: "Ended turns", unit: "ops", lines: rate("gateway_turns_total", "agent, status") },
      { title: "Duration", unit: "s", lines: quantiles("gateway_turn_duration_seconds", "agent", "{{agent}}") },
      { title: "Wait in the queue", unit: "s", lines: quantiles("gateway_turn_wait_seconds", "agent", "{{agent}}") },
      {
        title: "Queued and running",
        lines: [
          ...value("gateway_turns_queued", "queued {{instance}}"),
          ...value("gateway_turns_running", "running {{instance}}"),
        ],
      },
      {
        title: "Webhooks merged into open turns",
        unit: "ops",
        lines: rate("gateway_webhooks_coalesced_total", "mapping"),
      },
      { title: "Retries", unit: "ops", lines: rate("gateway_turn_retries_total", "agent") },
      { title: "Backend failures", unit: "ops", lines: rate("gateway_backend_failures_total", "agent") },
    ],
  },
  {
    title: "Tokens, cost and budgets",
    panels: [
      { title: "Tokens read", lines: rate("gateway_input_tokens_total", "agent, model") },
      { title: "Tokens written", lines: rate("gateway_output_tokens_total", "agent, model") },
      { title: "Cost", lines: rate("gateway_cost_total", "agent, model") },
      { title: "Used budgets", unit: "percentunit", lines: value("gateway_budget_used_ratio", "{{budget}}") },
      { title: "Refused by budgets", unit: "ops", lines: rate("gateway_budget_refused_total", "budget") },
    ],
  },
  {
    title: "Events, announcements and notifications",
    panels: [
      {
        title: "System events",
        lines: [
          ...value("gateway_events_queued", "queued {{instance}}"),
          ...value("gateway_events_dead", "dead {{instance}}"),
        ],
      },
      { title: "Runs of schedules", unit: "ops", lines: rate("gateway_schedule_runs_total", "schedule, outcome") },
      { title: "Heartbeats", unit: "ops", lines: rate("gateway_beats_total", "agent") },
      { title: "Announcements", unit: "ops", lines: rate("gateway_announcements_total", "channel, outcome") },
      { title: "Notifications", unit: "ops", lines: rate("gateway_notifications_total", "endpoint, outcome") },
      {
        title: "Waiting notifications, stopped endpoints",
        lines: [
          ...value("gateway_notifications_waiting", "waiting {{endpoint}}"),
          ...value("gateway_endpoint_stopped", "stopped {{endpoint}}"),
        ],
      },
    ],
  },
  {
    title: "The process and its store",
    panels: [
      { title: "Store", unit: "bytes", lines: value("gateway_store_bytes") },
      {
        title: "Fullest share of a caller",
        unit: "percentunit",
        lines: value("gateway_fullest_share_ratio", "{{kind}}"),
      },
      { title: "Store failures", unit: "ops", lines: rate("gateway_store_failures_total", "operation") },
      { title: "Memory", unit: "bytes", lines: value("process_resident_memory_bytes") },
      { title: "CPU", unit: "percentunit", lines: rate("process_cpu_seconds_total", "instance") },
      { title: "Event loop lag", unit: "s", lines: value("nodejs_eventloop_lag_seconds", "{{instance}} {{quantile}}") },
      { title: "Open files", lines: value("process_open_fds") },
    ],
  },
];
