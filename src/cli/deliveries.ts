import { bytes, duration } from "#console/lib/format.ts";
import { type StepTone, stepWords } from "#console/lib/steps.ts";
import type { Gateway } from "#generated/clients/typescript/src/index.ts";
import type { Delivery, DeliveryOutcome, DeliverySurface } from "#generated/clients/typescript/src/rest-types.ts";
import type { Calling } from "./calling.ts";
import { cut, fields, oneLine } from "./output.ts";
import { print, say, styled } from "./terminal.ts";
import { shortTime } from "./values.ts";

const SIGNS: Record<StepTone, string> = {
  done: "✓",
  running: "▸",
  waiting: "…",
  failed: "✕",
  refused: "✕",
  replay: "↻",
  plain: "·",
};
const COLOURS: Partial<Record<StepTone, "green" | "red" | "yellow">> = {
  done: "green",
  failed: "red",
  refused: "red",
  waiting: "yellow",
};

/** A request with its timeline, a step a line. */
export function deliveryWords(delivery: Delivery, { raw }: { raw?: boolean }): string {
  const began = Date.parse(delivery.at);
  const head = fields({
    delivery: delivery.delivery_id,
    request: `${delivery.method} ${oneLine(delivery.path)}`,
    received: isRun(delivery)
      ? shortTime(delivery.at)
      : `${shortTime(delivery.at)} from ${delivery.address}, ${bytes(delivery.bytes)}`,
    caller: delivery.caller ?? undefined,
    outcome: `${delivery.outcome}${delivery.status === null ? "" : `, answered ${delivery.status}`}`,
    mapping: delivery.mapping ?? undefined,
    agent: delivery.agent ?? undefined,
    session: delivery.session_id ?? undefined,
    turn: delivery.turn_id ?? undefined,
    event: delivery.event_id ?? undefined,
    "replay of": delivery.replay_of ?? undefined,
  });
  const steps = delivery.timeline.map((step) => {
    const { words, tone, body, link } = stepWords(step);
    const colour = COLOURS[tone];
    const after = `+${duration(Math.max(0, Date.parse(step.at) - began))}`.padStart(9);
    const line = `${after}  ${colour ? styled(colour, SIGNS[tone]) : SIGNS[tone]} ${oneLine(link ? `${words} · ${link}` : words)}`;
    return body ? `${line}\n${cut(body, 2_000).replace(/^/gm, " ".repeat(13))}` : line;
  });
  return [head, "", ...steps, ...(raw ? rawWords(delivery) : [])].join("\n");
}

/** True for a run of a schedule at its planned time, which no caller sent. */
function isRun({ surface, address }: Delivery): boolean {
  return surface === "schedule" && address === "";
}

function rawWords({ headers, body, body_encoding: encoding }: Delivery): string[] {
  return [
    "",
    ...Object.entries(headers).map(([name, value]) => `${styled("dim", name)}: ${oneLine(value)}`),
    "",
    body === null
      ? "No body was stored."
      : encoding === "base64"
        ? `A body that is not text, in base64:\n${body}`
        : body,
  ];
}

const OPEN: readonly DeliveryOutcome[] = ["queued", "running"];

/** The request after its last change. */
export async function untilEnded(gateway: Gateway, id: string, signal: AbortSignal): Promise<Delivery> {
  for (let pauseMs = 100; ; pauseMs = Math.min(2_000, pauseMs * 2)) {
    const delivery = await gateway.deliveries.get(id, { signal });
    if (!OPEN.includes(delivery.outcome)) return delivery;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    signal.throwIfAborted();
  }
}

const MOST_SHOWN = 1_000;

type TailOptions = { surface?: DeliverySurface; outcome?: DeliveryOutcome };

/** Prints requests as they come, and each again when its outcome is another. */
export async function tailDeliveries({ gateway, connect, options, signal }: Calling<TailOptions>): Promise<void> {
  await using socket = await connect();
  const pushes = socket.pushes({ signal });
  await socket.subscribe({ gateway: null, deliveries: true }, { signal });
  let newest = new Date().toISOString();
  /** The outcome that each was printed with last. */
  const shown = new Map<string, DeliveryOutcome>();

  const show = async (id: string): Promise<void> => {
    const delivery = await gateway.deliveries.get(id, { signal });
    if (options.surface !== undefined && delivery.surface !== options.surface) return;
    if (options.outcome !== undefined && delivery.outcome !== options.outcome) return;
    // It is pushed more than once, and after a gap it is also read from the list.
    if (shown.get(id) === delivery.outcome) return;
    shown.set(id, delivery.outcome);
    for (const oldest of shown.keys()) if (shown.size > MOST_SHOWN) shown.delete(oldest);
    if (options.json) print(JSON.stringify(delivery));
    else print(options.quiet ? id : tailLine(delivery));
  };
  for await (const push of pushes) {
    if (push.method === "delivery.recorded" || push.method === "delivery.changed") {
      const { deliveryId, at } = push.params.delivery;
      if (at > newest) newest = at;
      // It may have left the ring meanwhile.
      await show(deliveryId).catch((error: Error) =>
        error.name === "delivery-not-found" ? undefined : Promise.reject(error),
      );
    }
    // Some were left out: what was away is read from the list.
    if (push.method === "stream.reset" && !("sessionId" in push.params)) {
      if (!options.json) say("Some requests were left out here. They are read from the list.");
      const missed: string[] = [];
      for await (const { delivery_id } of gateway.deliveries.list({ from: newest, limit: 100 }, { signal }))
        missed.push(delivery_id);
      for (const id of missed.reverse()) await show(id);
    }
  }
}

function tailLine(delivery: Delivery): string {
  const { delivery_id, at, outcome, status, method, path } = delivery;
  const reason = reasonOf(delivery);
  const colour = ["refused", "failed", "dead"].includes(outcome)
    ? "red"
    : outcome === "completed" || outcome === "handled"
      ? "green"
      : "yellow";
  const words = `${shortTime(at)}  ${delivery_id}  ${styled(colour, outcome.padEnd(9))}  ${status ?? "-"}  ${method} ${oneLine(path)}`;
  return reason === undefined ? words : `${words}  ${cut(oneLine(reason), 120)}`;
}

/** The reason for a refusal, or the failure of the result. */
function reasonOf({ outcome, timeline }: Delivery): string | undefined {
  if (!["refused", "failed", "dead", "unmatched", "skipped", "missed"].includes(outcome)) return undefined;
  const step = timeline.findLast(({ name }) =>
    ["request.refused", "turn.failed", "event.dead", "mapping.tried", "schedule.skipped", "schedule.missed"].includes(
      name,
    ),
  );
  if (step === undefined) return undefined;
  const { detail } = step;
  return String(detail?.detail ?? detail?.error ?? detail?.reason ?? stepWords(step).words);
}
