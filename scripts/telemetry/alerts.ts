/** An alert: its condition in PromQL, how long it must hold, and what it means to the person who gets it. */
export type Alert = {
  name: string;
  expr: string;
  lasts: string;
  severity: "critical" | "warning" | "info";
  meaning: string;
  remedy: string;
};

/** The alerts, those that cost users most first. */
export const ALERTS: readonly Alert[] = [
  {
    name: "GatewayDown",
    expr: 'up{job="agent-gateway"} == 0',
    lasts: "1m",
    severity: "critical",
    meaning: "Prometheus cannot read the gateway's metrics.",
    remedy:
      "Ask `/healthz`. No answer: find out why the process ended (`journalctl`, `docker logs`). An answer: the RPC token of the scrape is wrong, or lacks `system.health`.",
  },
  {
    name: "GatewayStoreFailing",
    expr: "sum by (instance) (increase(gateway_store_failures_total[5m])) > 0",
    lasts: "2m",
    severity: "critical",
    meaning: "Calls to the store fail. New work is refused with 503; nothing that was acknowledged is lost.",
    remedy:
      "Check the database and the disk. The log has `store.failed` and `store.unavailable` with the reason. The gateway recovers automatically.",
  },
  {
    name: "GatewayServerErrors",
    expr: 'sum by (surface) (rate(gateway_requests_total{status="5xx"}[5m])) / sum by (surface) (rate(gateway_requests_total[5m])) > 0.05',
    lasts: "5m",
    severity: "critical",
    meaning: "More than one request in twenty ends with a 5xx.",
    remedy:
      "`gateway_errors_total` by `error` names the errors, and the reference has the remedy for each. `turn-failed` and `agent-unavailable` are failures of the agent.",
  },
  {
    name: "GatewayRestarting",
    expr: "changes(process_start_time_seconds[30m]) > 2",
    lasts: "0m",
    severity: "critical",
    meaning: "The gateway started more than twice in half an hour.",
    remedy: "The last log lines say why it ended. Check the memory limit of its container, too.",
  },
  {
    name: "GatewayUnexpectedErrors",
    expr: "increase(gateway_unexpected_errors_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "An unexpected error: a fault of the gateway.",
    remedy:
      "The log has `unexpected.error` with the cause. Report it with the file of `agent-gateway diagnostics export`.",
  },
  {
    name: "GatewayTurnsFailing",
    expr: 'sum by (agent) (rate(gateway_turns_total{status="failed"}[10m])) / sum by (agent) (rate(gateway_turns_total[10m])) > 0.2',
    lasts: "10m",
    severity: "warning",
    meaning: "More than a fifth of an agent's turns fail.",
    remedy: "The log has `backend.failed` with the reason. `agent-gateway turns list --status failed` lists the turns.",
  },
  {
    name: "GatewayAgentResting",
    expr: "max by (agent) (gateway_agent_rest_seconds) > 0",
    lasts: "5m",
    severity: "warning",
    meaning:
      "An agent's backend failed several times in a row and gets no requests for a while; its turns wait or fail.",
    remedy: "Check the provider or program behind it. The next successful turn ends the pause.",
  },
  {
    name: "GatewayTurnsWaiting",
    expr: "histogram_quantile(0.95, sum by (agent, le) (rate(gateway_turn_wait_seconds_bucket[5m]))) > 10",
    lasts: "10m",
    severity: "warning",
    meaning: "One turn in twenty waits for more than ten seconds before it runs.",
    remedy:
      "Raise `agents.<name>.concurrency` or `gateway.concurrency`, or add a gateway. A slow backend has this effect, too.",
  },
  {
    name: "GatewayWorkRefused",
    expr: "sum by (reason) (rate(gateway_work_refused_total[5m])) > 0",
    lasts: "5m",
    severity: "warning",
    meaning: "A limit refuses new work; callers get 429 or 503.",
    remedy: "`reason` names the limit; [`limits`](configuration.md#limits) explains each one.",
  },
  {
    name: "GatewayStoreNearlyFull",
    expr: "max by (instance) (gateway_store_bytes) > 0.8 * 1073741824",
    lasts: "10m",
    severity: "warning",
    meaning:
      "The store holds more than four fifths of `limits.storeBytes` (here its default, 1 GiB), past which new work is refused.",
    remedy: "Raise the limit if the disk has space, or shorten `sessions.retention`. Put your limit into this alert.",
  },
  {
    name: "GatewayTurnsLost",
    expr: "increase(gateway_turns_lost_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning:
      "A gateway lost turns to another one, because it or the database stood still past the lease. The turns ran again.",
    remedy: "Look for pauses: swapping, a stopped virtual machine, an unavailable database. The log has `turn.lost`.",
  },
  {
    name: "GatewayEventLoopSlow",
    expr: 'max by (instance) (nodejs_eventloop_lag_seconds{quantile="1"}) > 0.5',
    lasts: "5m",
    severity: "warning",
    meaning: "The process was busy for half a second at a stretch; all callers waited meanwhile.",
    remedy: "Check its CPU. Add a gateway, or give the process a core of its own.",
  },
  {
    name: "GatewayToolServerFailing",
    expr: "sum by (server) (increase(gateway_tool_server_failures_total[15m])) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "A tool server is unavailable: turns continue without its tools.",
    remedy: "The log has `tools.unavailable` with the reason.",
  },
  {
    name: "GatewayAnnouncementsWaiting",
    expr: "max by (instance) (gateway_announcements_waiting) > 100",
    lasts: "15m",
    severity: "warning",
    meaning: "A channel does not accept the replies that are announced to it.",
    remedy: "`system.health` names the channel; the log has its answers.",
  },
  {
    name: "GatewayEventsDead",
    expr: "max by (instance) (gateway_events_dead) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "System events failed three times and are dead. They are still stored.",
    remedy: "`agent-gateway events list --status dead` lists them, `events replay` queues one again.",
  },
  {
    name: "GatewayTokensGuessed",
    expr: "sum by (surface) (rate(gateway_auth_failures_total[10m])) > 1",
    lasts: "10m",
    severity: "warning",
    meaning: "More than one request a second comes with a wrong token or none.",
    remedy: "The log has `auth.failed` with the addresses: a client with an old token, or a person who guesses.",
  },
  {
    name: "GatewayConfigRefused",
    expr: "increase(gateway_config_refusals_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "A changed configuration has a mistake. The previous one stays in force, and the next start will fail.",
    remedy: "The log has `config.refused` with file, line and key. `agent-gateway check` reports the same.",
  },
  {
    name: "GatewayLogLinesDropped",
    expr: "increase(gateway_log_lines_dropped_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "The reader of the log was too slow, and lines are missing from it.",
    remedy: "Check the program that reads the log, or set `LOG_LEVEL=warn`.",
  },
  {
    name: "GatewayKeysEnding",
    expr: "max by (state) (gateway_rest_keys_ending) > 0",
    lasts: "0m",
    severity: "info",
    meaning: "REST keys expire within 14 days (`soon`), or expired within the last 7 (`ended`).",
    remedy: "`system.health` names them. [Rotate them](#keys-that-end).",
  },
  {
    name: "GatewayWebhookTokenOld",
    expr: "max by (name) (gateway_webhook_token_age_days) > 90",
    lasts: "0m",
    severity: "info",
    meaning: "A webhook token has been in use for more than 90 days.",
    remedy: "Add a new one to `webhooks.token`, give it to the senders, then remove the old one.",
  },
  {
    name: "GatewayAgentPaused",
    expr: "max by (agent) (gateway_agent_paused) == 1",
    lasts: "1h",
    severity: "info",
    meaning: "An agent has been paused for an hour: its work waits.",
    remedy: "Run `agent-gateway agents resume <name>` once the reason for the pause is gone.",
  },
];
