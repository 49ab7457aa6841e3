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
  const d = detail ?? {};
  const number = (key: string): number => Number(d[key] ?? 0);
  switch (name) {
    case "request.received":
      return { words: `It came from ${text(d.address)}, ${bytes(number("bytes"))}`, tone: "plain" };
    case "request.replayed":
      return { words: `${text(d.by)} sent ${text(d.replay_of)} again`, tone: "replay" };
    case "request.sent-again":
      return { words: `${text(d.by)} sent it again as ${text(d.delivery_id)}`, tone: "replay" };
    case "request.edited":
      return { words: `They gave it another body, ${bytes(number("bytes"))}`, tone: "replay" };
    case "token.accepted":
      return { words: `The token ${text(d.name)} was good`, tone: "done" };
    case "token.refused":
      return { words: `The token was refused${because(d.reason)}`, tone: "refused" };
    case "signature.accepted":
      return { words: `The signature of ${text(d.type)} was good`, tone: "done" };
    case "signature.refused":
      return { words: `The signature was refused${because(d.reason)}`, tone: "refused" };
    case "rate-limit.counted":
      return {
        words: `${number("left")} of ${number("max_requests")} calls were left in ${duration(number("window_ms"))}`,
        tone: "plain",
      };
    case "mapping.tried":
      return d.matched
        ? { words: `The mapping ${text(d.matched)} matched`, tone: "done" }
        : { words: "No mapping matched", tone: "waiting" };
    case "message.rendered":
      return { words: `The mapping ${text(d.mapping)} made the message`, tone: "plain", body: text(d.message) };
    case "request.repeated":
      return { words: `An earlier request did this work: ${text(d.turn_id ?? d.event_id)}`, tone: "waiting" };
    case "request.refused":
      return {
        words: `Refused with ${number("status")} ${text(d.error)}`,
        tone: "refused",
        body: text(d.detail) || undefined,
      };
    case "challenge.answered":
      return { words: "The sender asked whether the address is ours, and was answered", tone: "done" };
    case "turn.queued":
      return { words: "The turn was stored and waits", tone: "waiting" };
    case "turn.started":
      return {
        words: `${number("attempt") > 1 ? `Attempt ${number("attempt")} began` : "The turn began"}, after a wait of ${duration(number("waited_ms"))}`,
        tone: "running",
      };
    case "turn.returned":
      return {
        words: `Attempt ${number("attempt")} failed${because(d.reason)}. It is tried again in ${duration(number("delay_ms"))}`,
        tone: "failed",
      };
    case "tool.called":
      return {
        words: `The tool ${text(d.tool)} ${d.ok ? "answered" : `failed${because(d.reason)}`} in ${duration(number("ms"))}`,
        tone: d.ok ? "plain" : "failed",
      };
    case "tool.unavailable":
      return { words: `The tools of ${text(d.server)} could not be used${because(d.reason)}`, tone: "failed" };
    case "model.unavailable":
      return {
        words: `The model ${text(d.model)} could not be used${because(d.reason)}${d.next ? `. ${text(d.next)} was asked instead` : ""}`,
        tone: "failed",
      };
    case "usage.unknown":
      return { words: `The agent does not report its token usage${because(d.reason)}`, tone: "plain" };
    case "turn.completed":
      return {
        words: `The agent answered in ${duration(number("latency_ms"))}${usage(d.usage)}`,
        tone: "done",
        body: text(d.reply),
      };
    case "turn.failed":
      return { words: `The turn failed: ${text(d.error)}`, tone: "failed", body: text(d.detail) || undefined };
    case "turn.cancelled":
      return { words: "The turn was cancelled", tone: "waiting", body: text(d.reply) || undefined };
    case "event.queued":
      return { words: "The event was stored and waits for the agent's next beat", tone: "waiting" };
    case "event.taken":
      return { words: `A beat took the event into ${text(d.turn_id)}`, tone: "running" };
    case "event.returned":
      return {
        words: `Its turn failed${because(d.reason)}. The event waits for the next beat (${plural(number("attempts"), "attempt")})`,
        tone: "failed",
      };
    case "event.handled":
      return { words: "The agent handled the event", tone: "done" };
    case "event.dead":
      return {
        words: `The event was given up after ${plural(number("attempts"), "attempt")}${because(d.reason)}`,
        tone: "failed",
      };
    case "event.requeued":
      return { words: `${text(d.by)} queued the event again`, tone: "replay" };
    case "announcement.delivered":
      return {
        words: `The reply was delivered to the channel ${text(d.channel)}${d.status ? ` (${text(d.status)})` : ""}`,
        tone: "done",
      };
    case "announcement.retried":
      return {
        words: `The channel ${text(d.channel)} did not take the reply${because(d.reason ?? d.status)}. It is tried again in ${duration(number("retry_in_ms"))}`,
        tone: "failed",
      };
    case "announcement.failed":
      return {
        words: `The reply could not be delivered to ${text(d.channel)}${because(d.reason ?? d.status)}`,
        tone: "failed",
      };
    case "announcement.returned":
      return {
        words: "The gateway stopped before the reply was delivered, and tries after its start",
        tone: "waiting",
      };
    case "announcement.unaddressed":
      return { words: "No channel is configured for the reply: subscribers alone hear of it", tone: "waiting" };
    default:
      return { words: name, tone: "plain" };
  }
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
