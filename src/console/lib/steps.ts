import { bytes, duration, plural } from "./format.ts";

/** One thing that happened, as the flight recorder tells it. */
export type Step = { at: string; name: string; detail: Record<string, unknown> | null };

export type StepTone = "done" | "running" | "waiting" | "failed" | "refused" | "replay" | "plain";
type StepText = { words: string; tone: StepTone; body?: string | undefined };

function text(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
function because(value: unknown): string {
  return value ? `: ${text(value)}` : "";
}

/** A step in plain words. A name that this page does not know is shown as it is. */
export function stepWords({ name, detail }: Step): StepText {
  const step = STEPS[name];
  if (!step) return { words: name, tone: "plain" };
  const d = detail ?? {};
  const [tone, words, body] = step;
  return { words: words(d), tone: typeof tone === "string" ? tone : tone(d), ...(body && { body: body(d) }) };
}

type Detail = Record<string, unknown>;

/** The tone, the words and the longer text of each step. */
const STEPS: Readonly<
  Record<
    string,
    readonly [
      tone: StepTone | ((d: Detail) => StepTone),
      words: (d: Detail) => string,
      body?: (d: Detail) => string | undefined,
    ]
  >
> = {
  "request.received": ["plain", (d) => `Received from ${text(d.address)}, ${size(d.bytes)}`],
  "request.replayed": ["replay", (d) => `${text(d.by)} sent ${text(d.replay_of)} again`],
  "request.sent-again": ["replay", (d) => `${text(d.by)} sent it again as ${text(d.delivery_id)}`],
  "request.edited": ["replay", (d) => `The body was replaced, ${size(d.bytes)}`],
  "token.accepted": ["done", (d) => `The token ${text(d.name)} was good`],
  "token.refused": ["refused", (d) => `The token was refused${because(d.reason)}`],
  "signature.accepted": ["done", (d) => `The signature of ${text(d.type)} was good`],
  "signature.refused": ["refused", (d) => `The signature was refused${because(d.reason)}`],
  "rate-limit.counted": [
    "plain",
    (d) => `${number(d.left)} of ${number(d.max_requests)} calls were left in ${time(d.window_ms)}`,
  ],
  "mapping.tried": [
    (d) => (d.matched ? "done" : "waiting"),
    (d) => (d.matched ? `The mapping ${text(d.matched)} matched` : "No mapping matched"),
  ],
  "message.rendered": ["plain", (d) => `The mapping ${text(d.mapping)} made the message`, (d) => text(d.message)],
  "request.repeated": ["waiting", (d) => `An earlier request did this work: ${text(d.turn_id ?? d.event_id)}`],
  "request.refused": [
    "refused",
    (d) => `Refused with ${number(d.status)} ${text(d.error)}`,
    (d) => text(d.detail) || undefined,
  ],
  "challenge.answered": ["done", () => "The sender asked whether the address is ours, and was answered"],
  "turn.queued": ["waiting", () => "The turn was stored and waits"],
  "turn.started": [
    "running",
    ({ attempt, waited_ms }) =>
      `${number(attempt) > 1 ? `Attempt ${number(attempt)} began` : "The turn began"}, after a wait of ${time(waited_ms)}`,
  ],
  "turn.returned": [
    "failed",
    (d) => `Attempt ${number(d.attempt)} failed${because(d.reason)}. It is tried again in ${time(d.delay_ms)}`,
  ],
  "tool.called": [
    (d) => (d.ok ? "plain" : "failed"),
    (d) => `The tool ${text(d.tool)} ${d.ok ? "answered" : `failed${because(d.reason)}`} in ${time(d.ms)}`,
  ],
  "tool.unavailable": ["failed", (d) => `The tools of ${text(d.server)} could not be used${because(d.reason)}`],
  "model.unavailable": [
    "failed",
    ({ model, reason, next }) =>
      `The model ${text(model)} could not be used${because(reason)}${next ? `. ${text(next)} was asked instead` : ""}`,
  ],
  "usage.unknown": ["plain", (d) => `The agent does not report its token usage${because(d.reason)}`],
  "turn.completed": [
    "done",
    (d) => `The agent answered in ${time(d.latency_ms)}${usage(d.usage)}`,
    (d) => text(d.reply),
  ],
  "turn.failed": ["failed", (d) => `The turn failed: ${text(d.error)}`, (d) => text(d.detail) || undefined],
  "turn.cancelled": ["waiting", () => "The turn was cancelled", (d) => text(d.reply) || undefined],
  "event.queued": ["waiting", () => "The event was stored and waits for the agent's next beat"],
  "event.taken": ["running", (d) => `A beat took the event into ${text(d.turn_id)}`],
  "event.returned": [
    "failed",
    (d) => `Its turn failed${because(d.reason)}. The event waits for the next beat (${attempts(d)})`,
  ],
  "event.handled": ["done", () => "The agent handled the event"],
  "event.dead": ["failed", (d) => `The event is not tried again after ${attempts(d)}${because(d.reason)}`],
  "event.requeued": ["replay", (d) => `${text(d.by)} queued the event again`],
  "announcement.delivered": [
    "done",
    (d) => `The reply was delivered to the channel ${text(d.channel)}${d.status ? ` (${text(d.status)})` : ""}`,
  ],
  "announcement.retried": [
    "failed",
    ({ channel, reason, status, retry_in_ms }) =>
      `The channel ${text(channel)} did not take the reply${because(reason ?? status)}. It is tried again in ${time(retry_in_ms)}`,
  ],
  "announcement.failed": [
    "failed",
    (d) => `The reply could not be delivered to ${text(d.channel)}${because(d.reason ?? d.status)}`,
  ],
  "announcement.returned": [
    "waiting",
    () => "The gateway stopped before the reply was delivered, and tries after its start",
  ],
  "announcement.unaddressed": [
    "waiting",
    () => "No channel is configured for the reply: only WebSocket subscribers receive it",
  ],
};

function number(value: unknown): number {
  return Number(value ?? 0);
}
function size(value: unknown): string {
  return bytes(number(value));
}
function time(value: unknown): string {
  return duration(number(value));
}
function attempts(d: Detail): string {
  return plural(number(d.attempts), "attempt");
}
function usage(value: unknown): string {
  const { total } = (value ?? {}) as { total?: number };
  return total ? `, with ${plural(total, "token")}` : "";
}

type Phase = { name: "let in" | "matched" | "waited" | "ran" | "answered"; ms: number; tone: StepTone };

/** Where each phase ends: at the last step of these names. */
const ENDS: readonly (readonly [Phase["name"], StepTone, readonly string[]])[] = [
  [
    "let in",
    "plain",
    [
      "request.received",
      "request.replayed",
      "request.edited",
      "token.accepted",
      "token.refused",
      "signature.accepted",
      "signature.refused",
      "rate-limit.counted",
      "request.refused",
      "request.repeated",
      "challenge.answered",
    ],
  ],
  ["matched", "plain", ["mapping.tried", "message.rendered", "turn.queued", "event.queued"]],
  ["waited", "waiting", ["turn.started", "event.taken"]],
  [
    "ran",
    "running",
    [
      "tool.called",
      "tool.unavailable",
      "model.unavailable",
      "usage.unknown",
      "turn.returned",
      "turn.completed",
      "turn.failed",
      "turn.cancelled",
      "event.returned",
      "event.handled",
      "event.dead",
    ],
  ],
  [
    "answered",
    "done",
    ["announcement.delivered", "announcement.retried", "announcement.failed", "announcement.returned"],
  ],
];

/** How long each phase took. Each ends where its last step is, and the next begins there. */
export function phasesOf(steps: readonly Step[]): Phase[] {
  const first = steps[0];
  if (!first) return [];
  let from = new Date(first.at).getTime();
  return ENDS.flatMap(([name, tone, names]) => {
    const last = steps.findLast((step) => names.includes(step.name));
    if (!last) return [];
    const to = Math.max(from, new Date(last.at).getTime());
    const ms = to - from;
    from = to;
    return [{ name, tone, ms }];
  });
}
