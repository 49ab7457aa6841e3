import { about, bytes, duration, plural } from "./format.ts";

/** One step of the flight recorder. */
export type Step = { at: string; name: string; detail: Record<string, unknown> | null };

export type StepTone = "done" | "running" | "waiting" | "failed" | "refused" | "replay" | "plain";
/** `link` is the id of the delivery that the step names. */
type StepText = { words: string; tone: StepTone; body?: string | undefined; link?: string | undefined };

function text(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
/** A reason behind a colon, without its full stop: more words may follow. */
function because(value: unknown): string {
  return value ? `: ${text(value).replace(/\.+$/, "")}` : "";
}

/** A step in plain words. An unknown name is shown unchanged. */
export function stepWords({ at, name, detail }: Step): StepText {
  const step = STEPS[name];
  if (!step) return { words: name, tone: "plain" };
  const d = detail ?? {};
  const [tone, words, body] = step;
  return {
    words: words(d, Date.parse(at)),
    tone: typeof tone === "string" ? tone : tone(d),
    ...(body && { body: body(d) }),
    ...(LINKED.has(name) && { link: text(d.delivery_id) || undefined }),
  };
}

const LINKED: ReadonlySet<string> = new Set(["request.coalesced", "group.joined"]);

type Detail = Record<string, unknown>;

/** The tone, the words and the longer text of each step. */
const STEPS: Readonly<
  Record<
    string,
    readonly [
      tone: StepTone | ((d: Detail) => StepTone),
      words: (d: Detail, at: number) => string,
      body?: (d: Detail) => string | undefined,
    ]
  >
> = {
  "request.received": ["plain", (d) => `Received from ${text(d.address)} · ${bytes(number(d.bytes))}`],
  "request.replayed": ["replay", (d) => `Replayed from ${text(d.replay_of)} by ${text(d.by)}`],
  "request.sent-again": ["replay", (d) => `Replayed as ${text(d.delivery_id)} by ${text(d.by)}`],
  "request.edited": ["replay", (d) => `Body edited (${bytes(number(d.bytes))})`],
  "token.accepted": ["done", (d) => `Token \`${text(d.name)}\` accepted`],
  "token.refused": ["refused", (d) => `Token refused${because(d.reason)}`],
  "signature.accepted": ["done", (d) => `Signature accepted (${text(d.type)})`],
  "signature.refused": ["refused", (d) => `Signature refused${because(text(d.reason).replace("-", " "))}`],
  "rate-limit.counted": [
    "plain",
    (d) => `Rate limit: ${number(d.left)} of ${number(d.max_requests)} left (${about(number(d.window_ms))})`,
  ],
  "mapping.tried": [
    (d) => (d.matched ? "done" : "waiting"),
    (d) => (d.matched ? `Mapping \`${text(d.matched)}\` matched` : "No mapping matched"),
    (d) => (d.matched ? undefined : missedPairs(d)),
  ],
  "message.rendered": [
    "plain",
    (d) =>
      `Message from mapping \`${text(d.mapping)}\`${d.group_key ? ` · key \`${text(d.group_key)}\`` : ""}${without(d.without)}`,
    (d) => text(d.message) || undefined,
  ],
  "request.coalesced": ["done", (d) => `Joined an open turn as request ${number(d.requests)}`],
  "group.opened": ["waiting", (d, at) => `Turn waits ${until(d.closes_at, at)} for more requests with the same key`],
  "group.joined": [
    "waiting",
    (d, at) => `Request ${number(d.requests)} joined · turn waits ${until(d.closes_at, at)} more`,
  ],
  "group.closed": ["done", (d) => `Wait ended with ${plural(number(d.requests), "request")}`],
  "schedule.fired": ["done", (d, at) => `Started by the schedule, ${until(at, d.planned_at)} after the planned time`],
  "schedule.requested": ["done", (d) => `Run requested by ${text(d.by)}`],
  "schedule.skipped": ["waiting", (d) => `Planned run skipped${because(d.detail ?? d.reason)}`],
  "schedule.missed": ["failed", (d) => `${plural(number(d.count), "planned run")} missed`, missedTimes],
  "request.repeated": ["waiting", (d) => `Repeat of an earlier request (${text(d.turn_id ?? d.event_id)})`],
  "request.refused": [
    "refused",
    (d) => `Refused: ${number(d.status)} ${text(d.error)}`,
    (d) => text(d.detail) || undefined,
  ],
  "challenge.answered": ["done", () => "Verification challenge answered"],
  "turn.queued": ["waiting", () => "Turn queued"],
  "turn.started": [
    "running",
    ({ attempt, waited_ms }) =>
      `${number(attempt) > 1 ? `Attempt ${number(attempt)}` : "Turn"} started after ${time(waited_ms)}`,
  ],
  "turn.returned": [
    "failed",
    (d) => `Attempt ${number(d.attempt)} failed${because(d.reason)} · next attempt in ${time(d.delay_ms)}`,
  ],
  "tool.called": [
    (d) => (d.ok ? "plain" : "failed"),
    (d) => `Tool \`${text(d.tool)}\` ${d.ok ? "called" : `failed${because(d.reason)}`} (${time(d.ms)})`,
  ],
  "tool.unavailable": ["failed", (d) => `Tools of \`${text(d.server)}\` unavailable${because(d.reason)}`],
  "model.unavailable": [
    "failed",
    ({ model, reason, next }) =>
      `Model \`${text(model)}\` unavailable${because(reason)}${next ? ` · next model: ${text(next)}` : ""}`,
  ],
  "usage.unknown": ["plain", (d) => `Token usage not reported${because(d.reason)}`],
  "turn.completed": [
    "done",
    (d) => `Reply completed in ${time(d.latency_ms)}${usage(d.usage)}`,
    (d) => text(d.reply) || undefined,
  ],
  "turn.failed": ["failed", (d) => `Turn failed: ${text(d.error)}`, (d) => text(d.detail) || undefined],
  "turn.cancelled": ["waiting", () => "Turn cancelled", (d) => text(d.reply) || undefined],
  "event.queued": ["waiting", () => "Event queued for the next heartbeat"],
  "event.taken": ["running", (d) => `Event taken by heartbeat (${text(d.turn_id)})`],
  "event.returned": [
    "failed",
    (d) => `Heartbeat failed${because(d.reason)} · event waits for the next heartbeat (${attempts(d)})`,
  ],
  "event.delayed": ["waiting", (d) => `Event waits: the budget ${text(d.budget)} is spent until ${text(d.resets_at)}`],
  "event.handled": ["done", () => "Event handled"],
  "event.dead": ["failed", (d) => `Event failed after ${attempts(d)}${because(d.reason)}`],
  "event.requeued": ["replay", (d) => `Event queued again by ${text(d.by)}`],
  "announcement.delivered": [
    "done",
    (d) => `Reply delivered to ${text(d.channel)}${d.status ? ` (${text(d.status)})` : ""}`,
  ],
  "announcement.retried": [
    "failed",
    ({ channel, reason, status, retry_in_ms }) =>
      `Reply delivery to ${text(channel)} failed${because(reason ?? status)} · next attempt in ${time(retry_in_ms)}`,
  ],
  "announcement.failed": ["failed", (d) => `Reply not delivered to ${text(d.channel)}${because(d.reason ?? d.status)}`],
  "announcement.returned": ["waiting", () => "Reply delivery interrupted by shutdown · next attempt after restart"],
  "announcement.requeued": ["replay", (d) => `Reply sent to ${text(d.channel)} again by ${text(d.by)}`],
  "announcement.misaddressed": [
    "failed",
    (d) => `Reply not addressed by \`${text(d.field)}\`${because(text(d.reason).replace("-", " "))}`,
  ],
  "announcement.unaddressed": ["waiting", () => "No channel for the reply: only WebSocket subscribers receive it"],
};

/** The places of a template that had no value. */
function without(places: unknown): string {
  return Array.isArray(places) && places.length > 0
    ? ` · no value at ${places.map((place) => `\`${text(place)}\``).join(", ")}`
    : "";
}
/** The length from one time to another. */
function until(to: unknown, from: unknown): string {
  return duration(Math.max(0, msOf(to) - msOf(from)));
}
function msOf(at: unknown): number {
  return typeof at === "number" ? at : Date.parse(text(at));
}
function missedTimes({ count, first_at, last_at }: Detail): string | undefined {
  return number(count) > 1 ? `first ${text(first_at)}\nlast  ${text(last_at)}` : text(first_at) || undefined;
}
function number(value: unknown): number {
  return Number(value ?? 0);
}
function time(value: unknown): string {
  return duration(number(value));
}
function attempts(d: Detail): string {
  return plural(number(d.attempts), "attempt");
}
function usage(value: unknown): string {
  const { total } = (value ?? {}) as { total?: number };
  return total ? ` · ${plural(total, "token")}` : "";
}

type Pair = { path: string; expected: readonly string[]; found?: string | null };

/** The pair of a mapping that does not match. `found` is undefined if the value is not stored. */
export function pairWords({ path, expected, found }: Pair): string {
  const is = found === undefined ? "is not" : found === null ? "is missing" : `is ${JSON.stringify(found)}`;
  return `${path} must be ${expected.map((one) => JSON.stringify(one)).join(" or ")}, and ${is}`;
}

/** The pair that failed of each mapping, a line each. */
function missedPairs({ tried, untold }: Detail): string | undefined {
  if (!Array.isArray(tried) || tried.length === 0) return undefined;
  const lines = (tried as (Pair & { mapping: string })[]).map((pair) => `${pair.mapping}: ${pairWords(pair)}`);
  return [...lines, ...(number(untold) > 0 ? [`and ${plural(number(untold), "other mapping")}`] : [])].join("\n");
}
