import { restMsOf } from "#core/agents/agents.ts";
import type { Core } from "#core/core.ts";
import type { Registry } from "#observe/metrics.ts";
import type { Store } from "#store/store.ts";

/** The metrics that are read from the store and the core. */
export function registerGauges(
  registry: Registry,
  store: Store,
  { agents, outbox, settings, tokenAges, endingKeys }: Core,
): void {
  const gauge = (name: string, help: string, read: () => number) =>
    registry.read("gauge", `gateway_${name}`, help, read);
  gauge("sessions", "Sessions in the store.", () => store.stats().sessions);
  gauge("turns_queued", "Queued turns.", () => store.stats().turnsQueued);
  gauge("turns_running", "Running turns.", () => store.stats().turnsRunning);
  gauge("store_bytes", "Size of the stored data, as counted for limits.storeBytes.", () => store.stats().bytes);
  gauge("announcements_waiting", "Replies that wait for delivery to a channel.", () => store.stats().announcements);
  const byEndpoint = (name: string, help: string, value: (endpoint: string) => number) =>
    registry.read("gauge", `gateway_${name}`, help, () =>
      [...settings().notify.keys()].map((endpoint) => ({ labels: { endpoint }, value: value(endpoint) })),
    );
  byEndpoint("notifications_waiting", "Notifications that wait or are retried.", (endpoint) => {
    return store.stats().notifications[endpoint] ?? 0;
  });
  byEndpoint("endpoint_stopped", "1 while the endpoint of notifications is stopped, otherwise 0.", (endpoint) => {
    return outbox.stopped().includes(endpoint) ? 1 : 0;
  });
  gauge("events_queued", "System events that wait or are in a running turn.", () => store.stats().eventsQueued);
  gauge("events_dead", "Dead system events that are still stored.", () => store.stats().eventsDead);
  gauge("deliveries", "Deliveries in the flight recorder.", () => store.stats().deliveries);
  registry.read(
    "gauge",
    "gateway_agent_rest_seconds",
    "Remaining time in which a failing backend gets no requests; otherwise 0.",
    () => agents.list().map((agent) => ({ labels: { agent: agent.name }, value: restMsOf(agent) / 1_000 })),
  );
  registry.read("gauge", "gateway_agent_paused", "1 while the agent is paused, otherwise 0.", () =>
    agents.list().map(({ name }) => ({
      labels: { agent: name },
      value: store.agentCounts(name).pausedAt === undefined ? 0 : 1,
    })),
  );
  registry.read("gauge", "gateway_webhook_token_age_days", "Age of a webhook token, in days.", () =>
    tokenAges().map(({ index, name, days }) => ({ labels: { index: String(index), name }, value: days })),
  );
  registry.read(
    "gauge",
    "gateway_rest_keys_ending",
    "REST keys that expire within 14 days, or expired within the last 7.",
    () => {
      const { soon, ended } = endingKeys();
      return [
        { labels: { state: "soon" }, value: soon },
        { labels: { state: "ended" }, value: ended },
      ];
    },
  );
}
