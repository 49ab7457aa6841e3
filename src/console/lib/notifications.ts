import type { ConfigValue, Notification } from "#generated/clients/typescript/src/rest-types.ts";
import { valueText } from "./config-view.ts";

/** An endpoint of `notify`, as it is configured. */
export type Endpoint = {
  name: string;
  url: string;
  /** Names and patterns, as written. */
  events: readonly string[];
  /** The only agents whose events it gets; empty for all. */
  agents: readonly string[];
  /** True if the notifications of turns contain the reply. */
  hasReplies: boolean;
};

const PART = /^notify\.(.+)\.(url|secret|content|events\.\d+|agents\.\d+)$/;

/** The endpoints of the configuration, in its order, without their secrets. */
export function endpointsOf(values: readonly ConfigValue[]): Endpoint[] {
  const endpoints = new Map<string, Endpoint>();
  for (const { path, value } of values) {
    const [, name, part = ""] = PART.exec(path) ?? [];
    if (name === undefined) continue;
    const known = endpoints.get(name) ?? { name, url: "", events: [], agents: [], hasReplies: false };
    endpoints.set(name, withPart(known, part.replace(/\.\d+$/, ""), valueText(value)));
  }
  return [...endpoints.values()];
}

function withPart(endpoint: Endpoint, part: string, text: string): Endpoint {
  switch (part) {
    case "url":
      return { ...endpoint, url: text };
    case "events":
      return { ...endpoint, events: [...endpoint.events, text] };
    case "agents":
      return { ...endpoint, agents: [...endpoint.agents, text] };
    case "content":
      return { ...endpoint, hasReplies: text === "reply" };
    default:
      return endpoint;
  }
}

/** The state of an endpoint, why it is not `ok`, and the number of notifications that wait for it. */
export type EndpointHealth = { state: "ok" | "failing" | "stopped"; reason: string; waiting: number };
type Part = { name: string; status: string; detail: string | null };

const WAITING = /\s*(\d+) notifications? (?:is|are) waiting\./;
const STOPPED = /^Stopped: /;

/** The health of an endpoint, from its part of the gateway's health. */
export function healthOf(parts: readonly Part[], name: string): EndpointHealth {
  const part = parts.find((one) => one.name === `notify.${name}`);
  const detail = part?.detail ?? "";
  const waiting = Number(WAITING.exec(detail)?.[1] ?? 0);
  const reason = detail
    .replace(WAITING, "")
    .replace(/^(?:Stopped: the receiver answered|Last delivery failed:) /, "")
    .replace(/\.$/, "");
  if (part === undefined || part.status === "ok") return { state: "ok", reason: "", waiting };
  return { state: STOPPED.test(detail) ? "stopped" : "failing", reason, waiting };
}

/** The endpoint in the id of a notification. The id of an event has no dot. */
export function endpointIn(notificationId: string): string {
  return notificationId.slice(notificationId.indexOf(".") + 1);
}

const SOONEST_MS = 1_000;
const LATEST_MS = 30_000;
/** A waiting notification is read again after a fourth of its age. */
const PART_OF_AGE = 4;

/** The time until notifications that have not ended are read again, because no push reports their attempts. Undefined if all have ended. */
export function nextReadInMs(notifications: readonly Notification[], now: number): number | undefined {
  const waits = notifications
    .filter(({ ended_at }) => ended_at === null)
    .map(({ next_attempt_at, created_at }) =>
      next_attempt_at === null || Date.parse(next_attempt_at) <= now
        ? (now - Date.parse(created_at)) / PART_OF_AGE
        : Date.parse(next_attempt_at) - now + SOONEST_MS,
    );
  return waits.length === 0 ? undefined : Math.min(LATEST_MS, Math.max(SOONEST_MS, Math.min(...waits)));
}

/** An endpoint for a configuration of JSON5 or YAML, with its address and its secret in variables. */
export function exampleEndpoint(isYaml: boolean): string {
  const [begin, end, comment] = isYaml ? ["", "", "#"] : [" {", ",", "//"];
  const lines = [
    `notify:${begin}`,
    `  ops:${begin}`,
    `    url: "\${NOTIFY_URL}"${end}`,
    `    secret: "\${NOTIFY_SECRET}"${end} ${comment} echo "whsec_$(openssl rand -base64 32)"`,
    `    events: ["turn.failed", "alert.*"]${end}`,
  ];
  return [...lines, ...(isYaml ? [] : ["  },", "},"])].join("\n");
}
