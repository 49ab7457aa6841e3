import { readTurnEntries, stepsOfEntries } from "#core/turns/turn-timeline.ts";
import { isEnded } from "#core/turns/turns.ts";
import type { DeliveryStep, RecordedDelivery, Store, SystemEvent, Turn } from "#store/store.ts";

/** One thing that happened to a delivery. `detail` is data, as it is shown. */
export type TimelineStep = { at: number; name: string; detail: Detail | undefined };
type Detail = Readonly<Record<string, unknown>>;

export type TimelineStore = Pick<Store, "getTurn" | "getEvent" | "readEntries">;

/**
 * What happened to a delivery, in order: what was noted of it, and what the journal tells of its turn, or its record of its event. None of
 * this is kept twice, so nothing can disagree.
 */
export const readTimeline = async (store: TimelineStore, delivery: RecordedDelivery): Promise<TimelineStep[]> => {
  // What a repeat names was done for an earlier one, whose timeline has it.
  const { turnId, eventId } = delivery.answer === "accepted" ? delivery : NOTHING;
  const noted = delivery.steps.map(readStep);
  const turn = turnId === undefined ? undefined : await store.getTurn(turnId);
  const event = eventId === undefined ? undefined : await store.getEvent(eventId);
  const told = event ? await stepsOfEvent(store, event, noted) : turn ? await stepsOfTurn(store, turn) : [];
  const shown = turn && noted.some(isRendered) ? await withMessage(store, turn, noted) : noted;
  return inOrder([arrivalOf(delivery), ...notTold(shown, told)], withReasons(told, noted));
};

const NOTHING = { turnId: undefined, eventId: undefined };

const readStep = ({ at, name, detail }: DeliveryStep): TimelineStep => {
  return { at, name, detail: detail === undefined ? undefined : (JSON.parse(detail) as Detail) };
};

/** How it came. Some of its steps were noted before it was put together. */
const arrivalOf = ({ at, steps, replayOf, caller, address, bytes }: RecordedDelivery): TimelineStep => {
  const came = Math.min(at, steps[0]?.at ?? at);
  return replayOf === undefined
    ? { at: came, name: "request.received", detail: { address, bytes } }
    : { at: came, name: "request.replayed", detail: { replay_of: replayOf, by: caller, address } };
};

const stepsOfTurn = async (store: TimelineStore, turn: Turn): Promise<TimelineStep[]> =>
  stepsOfEntries(turn, await readTurnEntries(store, turn));

/** The journal tells when an attempt was given back; why was noted, where that is known. */
const returnOf = (attempt: unknown, steps: readonly TimelineStep[]): TimelineStep | undefined =>
  steps.find(({ name, detail }) => name === "turn.returned" && detail?.attempt === attempt);

const notTold = (noted: readonly TimelineStep[], told: readonly TimelineStep[]): TimelineStep[] =>
  noted.filter(({ name, detail }) => name !== "turn.returned" || !returnOf(detail?.attempt, told));

const withReasons = (told: readonly TimelineStep[], noted: readonly TimelineStep[]): TimelineStep[] =>
  told.map((step) => {
    const known = step.name === "turn.returned" ? returnOf(step.detail?.attempt, noted) : undefined;
    return known ? { ...step, detail: known.detail } : step;
  });

/** An event with the last turn that took it; those before it are told by what was noted as it came back. */
const stepsOfEvent = async (
  store: TimelineStore,
  event: SystemEvent,
  noted: readonly TimelineStep[],
): Promise<TimelineStep[]> => {
  const { status, attempts, turnId: turn_id, reason, endedAt } = event;
  const steps: TimelineStep[] = [{ at: event.createdAt, name: "event.queued", detail: undefined }];
  const turn = turn_id === undefined ? undefined : await store.getTurn(turn_id);
  for (const step of turn ? await stepsOfTurn(store, turn) : []) {
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
};

const isRendered = ({ name }: TimelineStep): boolean => name === "message.rendered";

/** The rendered message is the turn's own, which the journal has, right before the turn was queued. */
const withMessage = async (
  store: TimelineStore,
  { turnId, sessionId, seq }: Turn,
  noted: readonly TimelineStep[],
): Promise<readonly TimelineStep[]> => {
  const [entry] = await store.readEntries(sessionId, { after: seq - 2, limit: 1 });
  if (entry?.name !== "message.created" || entry.turnId !== turnId) return noted;
  const { text: message } = entry;
  return noted.map((step) => (isRendered(step) ? { ...step, detail: { ...step.detail, message } } : step));
};

/** What comes first of what happened in the same millisecond. */
const RANKS = ["event.queued", "event.taken", "turn.", "event.", "announcement."];
const rankOf = ({ name }: TimelineStep): number => {
  const rank = RANKS.findIndex((start) => name.startsWith(start));
  return name === "request.received" || name === "request.replayed" ? -2 : rank;
};

/** By time, but that each of these stays in the order in which it was told: a clock can be put back. */
const inOrder = (...kinds: readonly (readonly TimelineStep[])[]): TimelineStep[] =>
  kinds
    .flatMap((steps) => {
      let latest = -Infinity;
      return steps.map((step) => {
        latest = Math.max(latest, step.at);
        return { step, at: latest };
      });
    })
    .sort((a, b) => a.at - b.at || rankOf(a.step) - rankOf(b.step))
    .map(({ step }) => step);
