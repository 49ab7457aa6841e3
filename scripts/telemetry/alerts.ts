/** An alert: its condition in PromQL, the time for which the condition must hold, its meaning and its remedy. */
export type Alert = {
  name: string;
  expr: string;
  lasts: string;
  severity: "critical" | "warning" | "info";
  meaning: string;
  remedy: string;
};

/** The alerts, the most severe first. */
export const ALERTS: readonly Alert[] = [
  {
    name: "GatewayDown",
    expr: 'up{job="agent-gateway"} == 0',
    lasts: "1m",
    severity: "critical",
    meaning: "Prometheus cannot read the gateway's metrics.",
    remedy:
      "Request `/healthz`. If it does not answer, find out why the process ended (`journalctl`, `docker logs`). If it answers, the RPC token of the scrape is wrong or lacks `system.health`.",
  },
  {
    name: "GatewayStoreFailing",
    expr: "sum by (instance) (increase(gateway_store_failures_total[5m])) > 0",
    lasts: "2m",
    severity: "critical",
    meaning: "Calls to the store fail. New work is refused with 503; no acknowledged work is lost.",
    remedy:
      "Check the database and the disk. The log has `store.failed` and `store.unavailable` with the reason. The gateway recovers automatically.",
  },
  {
    name: "GatewayServerErrors",
    expr: 'sum by (surface) (rate(gateway_requests_total{status="5xx"}[5m])) / sum by (surface) (rate(gateway_requests_total[5m])) > 0.05',
    lasts: "5m",
    severity: "critical",
    meaning: "More than 5 % of the requests get a 5xx.",
    remedy:
      "`gateway_errors_total` counts the errors by name (label `error`); the error reference says how to fix each error. `turn-failed` and `agent-unavailable` are failures of the agent.",
  },
  {
    name: "GatewayRestarting",
    expr: "changes(process_start_time_seconds[30m]) > 2",
    lasts: "0m",
    severity: "critical",
    meaning: "The gateway started more than twice in half an hour.",
    remedy: "The last log lines before each restart have the reason. Also check the container's memory limit.",
  },
  {
    name: "GatewayUnexpectedErrors",
    expr: "increase(gateway_unexpected_errors_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "An unexpected error occurred: a bug in the gateway.",
    remedy:
      "The log has `unexpected.error` with the cause. Report it, and attach the file that `agent-gateway diagnostics export` writes.",
  },
  {
    name: "GatewayTurnsFailing",
    expr: 'sum by (agent) (rate(gateway_turns_total{status="failed"}[10m])) / sum by (agent) (rate(gateway_turns_total[10m])) > 0.2',
    lasts: "10m",
    severity: "warning",
    meaning: "More than 20 % of an agent's turns fail.",
    remedy: "The log has `backend.failed` with the reason. `agent-gateway turns list --status failed` lists the turns.",
  },
  {
    name: "GatewayAgentResting",
    expr: "max by (agent) (gateway_agent_rest_seconds) > 0",
    lasts: "5m",
    severity: "warning",
    meaning:
      "An agent's backend failed several times in a row. For up to a minute it gets no requests, and the agent's turns wait or fail.",
    remedy: "Check the agent's provider or service. The next successful turn ends the pause.",
  },
  {
    name: "GatewayTurnsWaiting",
    expr: "histogram_quantile(0.95, sum by (agent, le) (rate(gateway_turn_wait_seconds_bucket[5m]))) > 10",
    lasts: "10m",
    severity: "warning",
    meaning: "5 % of the turns wait more than ten seconds before they run.",
    remedy:
      "Raise `agents.<name>.concurrency` or `gateway.concurrency`, or add a gateway. A slow backend can also be the cause.",
  },
  {
    name: "GatewayWorkRefused",
    expr: "sum by (reason) (rate(gateway_work_refused_total[5m])) > 0",
    lasts: "5m",
    severity: "warning",
    meaning: "A limit refuses new work; callers get 429 or 503.",
    remedy: "`reason` is the name of the error; [`limits`](configuration.md#limits) explains each limit.",
  },
  {
    name: "GatewayStoreNearlyFull",
    expr: "max by (instance) (gateway_store_bytes) > 0.8 * 1073741824",
    lasts: "10m",
    severity: "warning",
    meaning:
      "The stored data exceeds 80 % of `limits.storeBytes` (this alert uses the default, 1 GiB). At the limit, new work is refused.",
    remedy:
      "Raise the limit if the disk has space, or shorten `sessions.retention`. If you change the limit, change it in this alert too.",
  },
  {
    name: "GatewayShareNearlyFull",
    expr: "max by (kind) (gateway_fullest_share_ratio) > 0.9",
    lasts: "5m",
    severity: "warning",
    meaning:
      "A caller uses more than 90 % of [its share](#a-share-for-each-caller) of the store or a queue. At the limit, its work is refused.",
    remedy:
      "`agent-gateway usage --group-by token` names the busiest callers. Delete sessions, let the queue get shorter, or raise `limits.share`.",
  },
  {
    name: "GatewayTurnsLost",
    expr: "increase(gateway_turns_lost_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning:
      "Another gateway took over turns of this gateway, because this gateway or the database was stalled longer than the lease. The turns ran again.",
    remedy:
      "Find the cause of the stall: swapping, a suspended virtual machine, an unavailable database. The log has `turn.lost`.",
  },
  {
    name: "GatewayEventLoopSlow",
    expr: 'max by (instance) (nodejs_eventloop_lag_seconds{quantile="1"}) > 0.5',
    lasts: "5m",
    severity: "warning",
    meaning: "The event loop was blocked for more than half a second. All callers waited during that time.",
    remedy: "Check the CPU usage of the process. Add a gateway, or dedicate a core to the process.",
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
    meaning: "More than 100 replies wait for delivery to a channel.",
    remedy: "`system.health` names the channel. The log has the channel's answers.",
  },
  {
    name: "GatewayEndpointStopped",
    expr: "max by (endpoint) (gateway_endpoint_stopped) == 1",
    lasts: "0m",
    severity: "warning",
    meaning:
      "The receiver of an endpoint's notifications answered 410 Gone. Its notifications wait, and fail after a day.",
    remedy:
      "Fix the receiver (`agent-gateway notifications test <endpoint>` prints its answer), then reload the configuration with SIGHUP. If the receiver is gone for good, remove the endpoint.",
  },
  {
    name: "GatewayNotificationsFailing",
    expr: 'max by (endpoint) (gateway_notifications_waiting) > 0 unless on (endpoint) sum by (endpoint) (increase(gateway_notifications_total{outcome="delivered"}[15m])) > 0 unless on (endpoint) max by (endpoint) (gateway_endpoint_stopped) == 1',
    lasts: "15m",
    severity: "warning",
    meaning: "An endpoint has not accepted a notification for 15 minutes, and notifications are waiting.",
    remedy:
      "`agent-gateway notifications test <endpoint>` prints the receiver's answer. Notifications are retried for a day; `agent-gateway notifications list --state failed` lists those that failed.",
  },
  {
    name: "GatewayBudgetSpent",
    expr: "max by (budget) (gateway_budget_used_ratio) >= 1",
    lasts: "0m",
    severity: "warning",
    meaning: "A budget is spent. New turns are refused, or wait for its next window.",
    remedy:
      "`agent-gateway budgets` shows its use. `agent-gateway budgets grant <budget>` raises it until its window ends.",
  },
  {
    name: "GatewayEventsDead",
    expr: "max by (instance) (gateway_events_dead) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "System events failed three times and are dead. They are still stored.",
    remedy:
      "`agent-gateway events list --status dead` lists the events. `agent-gateway events replay` queues an event again.",
  },
  {
    name: "GatewayTokensGuessed",
    expr: "sum by (surface) (rate(gateway_auth_failures_total[10m])) > 1",
    lasts: "10m",
    severity: "warning",
    meaning: "More than one request a second has a wrong token or none.",
    remedy:
      "The log has `auth.failed` with the addresses. The cause is a client with an old token, or an attempt to guess tokens.",
  },
  {
    name: "GatewayConfigRefused",
    expr: "increase(gateway_config_refusals_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning:
      "A changed configuration has an error. The gateway still uses the previous configuration, but the next start will fail.",
    remedy: "The log has `config.refused` with file, line and key. `agent-gateway check` reports the same errors.",
  },
  {
    name: "GatewayLogLinesDropped",
    expr: "increase(gateway_log_lines_dropped_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    meaning: "The program that reads the log was too slow. Log lines are missing.",
    remedy: "Check that program, or set `LOG_LEVEL=warn`.",
  },
  {
    name: "GatewayBudgetNearlySpent",
    expr: "max by (budget) (gateway_budget_used_ratio) >= on (budget) max by (budget) (gateway_budget_warn_ratio) < 1",
    lasts: "0m",
    severity: "info",
    meaning: "A budget has reached its `warnAt`.",
    remedy:
      "`agent-gateway budgets` shows its use and the end of its window. `agent-gateway budgets grant <budget>` raises it.",
  },
  {
    name: "GatewayKeysEnding",
    expr: "max by (state) (gateway_rest_keys_ending) > 0",
    lasts: "0m",
    severity: "info",
    meaning: "REST keys expire within 14 days (`soon`), or expired within the last 7 (`ended`).",
    remedy: "`system.health` names the keys. [Rotate the keys](#expiring-keys).",
  },
  {
    name: "GatewayWebhookTokenOld",
    expr: "max by (name) (gateway_webhook_token_age_days) > 90",
    lasts: "0m",
    severity: "info",
    meaning: "A webhook token has been in use for more than 90 days.",
    remedy: "Add a new token to `webhooks.token`, give it to the senders, then remove the old token.",
  },
  {
    name: "GatewayAgentPaused",
    expr: "max by (agent) (gateway_agent_paused) == 1",
    lasts: "1h",
    severity: "info",
    meaning: "An agent has been paused for an hour. Its work waits.",
    remedy: "Run `agent-gateway agents resume <name>` when the agent can run again.",
  },
];
