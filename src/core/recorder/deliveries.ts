import type { CoreParts } from "#core/parts.ts";
import { isTurnEnd, readTurnEntries, type TurnEndEntry } from "#core/sessions/turn-entries.ts";
import { isEnded } from "#core/turns/turns.ts";
import type { Pushes } from "#generated/push-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { showPreview } from "#kit/previews.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import { showCompleted, showUsage } from "#kit/usages.ts";
import type {
  Delivery,
  DeliveryStep,
  DeliveryWork,
  Entry,
  RecordedDelivery,
  Store,
  SystemEvent,
  Turn,
  TurnAnnouncement,
} from "#store/store.ts";

/** The flight recorder, read and written: received requests and their results. */
export function createDeliveries({ store, events, settings }: CoreParts) {
  const read = async (deliveryId: string): Promise<RecordedDelivery> => {
    const delivery = await store.getDelivery(deliveryId);
    if (!delivery) throw new GatewayError("delivery-not-found", `The recorder has no delivery ${deliveryId}.`);
    return delivery;
  };

  /** Never throws: a failure is logged, and the request is answered all the same. */
  const keep = async (operation: string, write: () => Promise<unknown>): Promise<void> => {
    try {
      await write();
    } catch (error) {
      events.storeFailed({ operation, error });
    }
  };

  return {
    read,
    async get(deliveryId: string): Promise<{ delivery: RecordedDelivery; timeline: TimelineStep[] }> {
      const delivery = await read(deliveryId);
      return { delivery, timeline: await readTimeline(store, delivery) };
    },
    /** Records a request that started nothing; `work` is the work that a repeat belongs to. A caller that names the delivery in an answer waits for it. */
    record: (delivery: Delivery, work?: DeliveryWork): Promise<void> =>
      keep("record", () => store.recordDelivery(delivery, settings().limits.recorder, work)),
    addStep: (deliveryId: string, step: DeliveryStep): Promise<void> =>
      keep("addDeliveryStep", () => store.addDeliveryStep(deliveryId, step)),
  };
}

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Why a delivery cannot be sent again; undefined when it can. */
export function whyNotReplayable({ surface, answer, body, bytes, caller }: Delivery): string | undefined {
  if (surface === "schedule") return "A schedule started it: run the schedule again.";
  if (surface !== "hooks")
    return "It was sent over an API, whose client can send it again; only webhooks are replayed.";
  if (answer === "challenge") return "A sender asked whether the address is ours; there is nothing to do again.";
  if (body?.includes(HIDDEN)) return HELD_SECRET;
  if (body !== undefined) return undefined;
  if (caller === "") return "The sender was not authenticated, so the body was not stored.";
  if (answer === "refused" && bytes === 0) return "It was refused before its body was read.";
  return "The body is not stored: recorder.bodies was off, or the session was deleted.";
}

const HELD_SECRET =
  "The body contained a secret of the configuration, which is not stored: [hidden] is in its place. Ask the sender to send it again.";

/** A delivery as lists and pushes show it. */
export type ShownDelivery = Pushes["delivery.recorded"]["delivery"];

export function showDelivery(delivery: RecordedDelivery, hide: (text: string) => string): ShownDelivery {
  return {
    deliveryId: delivery.deliveryId,
    at: new Date(delivery.at).toISOString(),
    // Heartbeats begin in the gateway, and bring no request.
    surface: delivery.surface as ShownDelivery["surface"],
    operation: delivery.operation,
    method: delivery.method,
    path: delivery.path,
    address: delivery.address,
    requestId: delivery.requestId,
    caller: delivery.caller === "" ? null : delivery.caller,
    bytes: delivery.bytes,
    outcome: delivery.outcome,
    status: statusOf(delivery) ?? null,
    mapping: delivery.mapping ?? null,
    replayOf: delivery.replayOf ?? null,
    senderId: delivery.senderId ?? null,
    agent: delivery.agent ?? null,
    messageId: delivery.messageId ?? null,
    sessionId: delivery.sessionId ?? null,
    turnId: delivery.turnId ?? null,
    eventId: delivery.eventId ?? null,
    preview: showPreview(delivery.preview, hide),
    replyPreview: showPreview(delivery.replyPreview, hide),
    endedAt: delivery.endedAt === undefined ? null : new Date(delivery.endedAt).toISOString(),
    tokens: delivery.tokens ?? null,
    announcement: showAnnouncement(delivery.announcement),
    error: delivery.error ? { name: delivery.error.name, detail: delivery.error.detail ?? null } : null,
  };
}

export function showAnnouncement(announcement: TurnAnnouncement | undefined): ShownDelivery["announcement"] {
  if (!announcement) return null;
  const { channel, state, reason = null } = announcement;
  return { channel, state, reason };
}

/** The HTTP status of its answer. A webhook that was stored with its work is answered 200, right after it. */
function statusOf({ surface, answer, status }: Delivery): number | undefined {
  return status ?? (surface === "hooks" && (answer === "accepted" || answer === "coalesced") ? 200 : undefined);
}

/** The kept headers by their names. Repeated headers are joined, as Node does. */
export function headersOf({ headers }: Pick<Delivery, "headers">): Record<string, string> {
  const found = new Map<string, string>();
  for (const line of headers === "" ? [] : headers.split("\n")) {
    const colon = line.indexOf(": ");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
    const before = found.get(name);
    found.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(found);
}

/** One thing that happened to a delivery. `detail` is data, as it is shown. */
export type TimelineStep = { at: number; name: string; detail: Detail | undefined };
type Detail = Readonly<Record<string, unknown>>;

type TimelineStore = Pick<Store, "getTurn" | "getEvent" | "readEntries">;

/**
 * The history of a delivery, in order: its own notes, and the journal's entries of its turn, or the record of its event. None of
 * this is kept twice, so nothing can disagree.
 */
async function readTimeline(store: TimelineStore, delivery: RecordedDelivery): Promise<TimelineStep[]> {
  // The work that a repeat names was done for an earlier delivery, whose timeline has it.
  const { turnId, eventId } = delivery.answer === "accepted" ? delivery : NOTHING;
  const noted = delivery.steps.map(readStep);
  const turn = turnId === undefined ? undefined : await store.getTurn(turnId);
  const event = eventId === undefined ? undefined : await store.getEvent(eventId);
  const told = event ? await stepsOfEvent(store, event, noted) : turn ? await stepsOfTurn(store, turn, noted) : [];
  const shown = turn && noted.some(isRendered) ? await withMessage(store, turn, noted) : noted;
  const unreported = shown.filter((step) => !isReturn(step) || !told.some((other) => isSameReturn(step, other)));
  const steps = inOrder([...arrivalOf(delivery), ...unreported], told);
  return delivery.showsWords ? steps : steps.map(withoutWords);
}

/** A step without the texts of the message, the reply and tool calls. */
function withoutWords(step: TimelineStep): TimelineStep {
  if (step.detail === undefined) return step;
  const { message: _message, reply: _reply, arguments: _arguments, result: _result, ...detail } = step.detail;
  return { ...step, detail };
}

const NOTHING = { turnId: undefined, eventId: undefined };

function readStep({ at, name, detail }: DeliveryStep): TimelineStep {
  return { at, name, detail: detail === undefined ? undefined : (JSON.parse(detail) as Detail) };
}

/** The arrival of the request. Some of its steps were recorded before the delivery was complete. A run of a schedule begins with its own step. */
function arrivalOf({ surface, at, steps, replayOf, caller, address, bytes }: RecordedDelivery): TimelineStep[] {
  if (surface === "schedule") return [];
  const came = Math.min(at, steps[0]?.at ?? at);
  return replayOf === undefined
    ? [{ at: came, name: "request.received", detail: { address, bytes } }]
    : [{ at: came, name: "request.replayed", detail: { replay_of: replayOf, by: caller, address } }];
}

/** The journal has the time of a release; its reason was recorded, if it is known. */
async function stepsOfTurn(store: TimelineStore, turn: Turn, noted: readonly TimelineStep[]): Promise<TimelineStep[]> {
  return stepsOfEntries(turn, await readTurnEntries(store, turn)).map((step) => {
    const why = noted.find((one) => isSameReturn(one, step));
    return why ? { ...step, detail: why.detail } : step;
  });
}

/** The same as steps: how long it waited each time, each attempt, why and when it ended, and its usage. */
function stepsOfEntries(turn: Turn, entries: readonly Entry[]): TimelineStep[] {
  const steps: TimelineStep[] = [];
  let queuedAt = turn.createdAt;
  let startedAt: number | undefined;
  let attempt = 0;
  for (const entry of entries) {
    const { at, name } = entry;
    if (name === "turn.queued") {
      // Queued once more, it was given back.
      if (attempt === 0) steps.push({ at, name, detail: undefined });
      else steps.push({ at, name: "turn.returned", detail: { attempt } });
      queuedAt = at;
      startedAt = undefined;
    } else if (name === "turn.started") {
      const isNext = entry.attempt === attempt + 1;
      attempt = entry.attempt;
      startedAt = at;
      steps.push({ at, name, detail: isNext ? { attempt, waited_ms: Math.max(0, at - queuedAt) } : { attempt } });
    } else if (isTurnEnd(entry)) {
      const latency = startedAt === undefined ? {} : { latency_ms: Math.max(0, at - startedAt) };
      const usage = (name === "turn.completed" ? showCompleted : showUsage)(entry.usage);
      steps.push({ at, name, detail: { ...detailOfEnd(entry), usage, ...latency } });
    }
  }
  return steps;
}

function detailOfEnd(entry: TurnEndEntry): object {
  if (entry.name === "turn.failed") return { error: entry.error.name, detail: entry.error.detail };
  return entry.name === "turn.cancelled" && entry.reply === "" ? {} : { reply: entry.reply };
}

function isReturn({ name }: TimelineStep): boolean {
  return name === "turn.returned";
}
function isSameReturn(one: TimelineStep, other: TimelineStep): boolean {
  return isReturn(one) && isReturn(other) && one.detail?.attempt === other.detail?.attempt;
}

/** An event with the last turn that took it; the recorded returns show the earlier ones. */
async function stepsOfEvent(
  store: TimelineStore,
  event: SystemEvent,
  noted: readonly TimelineStep[],
): Promise<TimelineStep[]> {
  const { status, attempts, turnId: turn_id, reason, endedAt } = event;
  const steps: TimelineStep[] = [{ at: event.createdAt, name: "event.queued", detail: undefined }];
  const turn = turn_id === undefined ? undefined : await store.getTurn(turn_id);
  for (const step of turn ? await stepsOfTurn(store, turn, noted) : []) {
    const isTaken = step.name === "turn.queued";
    const taken = { at: step.at, name: "event.taken", detail: { turn_id, session_id: turn?.sessionId } };
    steps.push(isTaken ? taken : step);
  }
  const isNoted = noted.some(({ name, detail }) => name === "event.returned" && detail?.turn_id === turn_id);
  if (endedAt !== undefined && status === "handled")
    steps.push({ at: endedAt, name: "event.handled", detail: { turn_id } });
  else if (endedAt !== undefined && status === "dead")
    steps.push({ at: endedAt, name: "event.dead", detail: { attempts, reason } });
  // One that was queued again after its death begins with no attempt.
  else if (turn && isEnded(turn) && attempts > 0 && !isNoted)
    steps.push({ at: turn.endedAt ?? turn.createdAt, name: "event.returned", detail: { turn_id, attempts, reason } });
  return steps;
}

function isRendered({ name }: TimelineStep): boolean {
  return name === "message.rendered";
}

/** The rendered message is the turn's own, which the journal has, right before the turn was queued. */
async function withMessage(
  store: TimelineStore,
  { turnId, sessionId, seq }: Turn,
  noted: readonly TimelineStep[],
): Promise<readonly TimelineStep[]> {
  const [entry] = await store.readEntries(sessionId, { after: seq - 2, limit: 1 });
  if (entry?.name !== "message.created" || entry.turnId !== turnId) return noted;
  const { text: message } = entry;
  return noted.map((step) => (isRendered(step) ? { ...step, detail: { ...step.detail, message } } : step));
}

/** The order of steps in the same millisecond. */
const RANKS = ["event.queued", "event.taken", "turn.", "event.", "announcement."];
function rankOf({ name }: TimelineStep): number {
  const rank = RANKS.findIndex((start) => name.startsWith(start));
  return name === "request.received" || name === "request.replayed" ? -2 : rank;
}

/** By time, except that the steps of each source remain in their order: a clock can be set back. */
function inOrder(...kinds: readonly (readonly TimelineStep[])[]): TimelineStep[] {
  return kinds
    .flatMap((steps) => {
      let latest = -Infinity;
      return steps.map((step) => {
        latest = Math.max(latest, step.at);
        return { step, at: latest };
      });
    })
    .sort((a, b) => a.at - b.at || rankOf(a.step) - rankOf(b.step))
    .map(({ step }) => step);
}
