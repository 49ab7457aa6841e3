import { requireAwake } from "#core/agents/agents.ts";
import { announceOf } from "#core/outbox/announcements.ts";
import type { CoreParts } from "#core/parts.ts";
import { checkParams, checkSkills, triggerText } from "#core/skills/skills.ts";
import type { Runner } from "#core/turns/runner.ts";
import { agentFor, orderOf, type TurnRequest } from "#core/turns/turns.ts";
import { GatewayError } from "#kit/errors.ts";
import { newBareId, newId } from "#kit/ids.ts";
import { dueTimes, type MissedTimes, MOST_COUNTED } from "#kit/schedule-times.ts";
import type { Delivery, DeliveryAnswer, ScheduledStart, ScheduleOrder, ScheduleState } from "#store/store.ts";
import type { ScheduleSettings } from "./settings.ts";
import { planOf, type ScheduleTimes } from "./times.ts";

export type RunParts = CoreParts & { runner: Runner; times: ScheduleTimes };

/** The request for a turn of a schedule. Throws if the skill or its params are refused. */
export function requestOf(parts: RunParts, schedule: ScheduleSettings, delivery: Delivery): TurnRequest {
  const { agents, skills, settings, clock } = parts;
  const { name, message = "", skillId, params = {}, sessionId, channel, model } = schedule;
  const skill = skillId === undefined ? undefined : skills.find(skillId);
  if (skillId !== undefined) checkSkills(skills, agents.get(schedule.agent), [skillId]);
  if (skill) checkParams(skill, params);
  return {
    place: {
      sessionId: sessionId ?? `schedule:${newBareId(clock.now())}`,
      agent: schedule.agent,
      channel: channel ?? "schedule",
      userId: name,
    },
    surface: "schedule",
    caller: name,
    text: skillId === undefined ? message : triggerText(skillId, params),
    skillIds: skillId === undefined ? [] : [skillId],
    model,
    announce: announceOf(settings(), { delivery: schedule.delivery, channel, hops: 0 }),
    delivery,
  };
}

/** The record of a run in the flight recorder. `step` is its first step. */
export function deliveryOf(
  { clock, settings }: RunParts,
  { name }: ScheduleSettings,
  operation: "schedules.fire" | "schedules.run",
  step: { name: string; detail: object },
  answer: DeliveryAnswer = "accepted",
): Delivery {
  const at = clock.now();
  return {
    deliveryId: newId("dlv", at),
    at,
    surface: "schedule",
    operation,
    method: "",
    path: `schedules/${name}`,
    address: "",
    requestId: newId("req", at),
    caller: name,
    showsWords: settings().recordBodies,
    bytes: 0,
    answer,
    status: undefined,
    mapping: undefined,
    replayOf: undefined,
    senderId: undefined,
    steps: [{ at, name: step.name, detail: JSON.stringify(step.detail) }],
    headers: "",
    body: undefined,
  };
}

/** Handles the planned time of a schedule that has come, and starts its turn, if there is one. Throws if the gateway stops or the store is unavailable. */
export async function runDue(parts: RunParts, schedule: ScheduleSettings, state: ScheduleState) {
  const { store, runner, clock, settings } = parts;
  const { name, agent } = schedule;
  const { nextAt: plannedAt = 0, anchorAt = plannedAt } = state;
  const now = clock.now();
  const times = await parts.times.timesOf(schedule, anchorAt);
  const { run, missed, nextAt } = dueTimes(times, plannedAt, now);
  const runAt = run ?? (missed && mayMakeUp(schedule, missed, now) ? missed.lastAt : undefined);
  const claim = runAt === undefined ? undefined : runner.reserve(agent);
  let isClaimed = false;
  try {
    const order: ScheduleOrder = {
      now: claim?.now ?? now,
      name,
      plan: planOf(schedule),
      plannedAt,
      nextAt,
      missed: missed && missedRun(parts, schedule, missed, now),
      start: runAt === undefined ? undefined : startOf(parts, schedule, runAt, claim),
      recorder: settings().limits.recorder,
    };
    const step = await store.runSchedule(order);
    const claimed = step.started?.claimed;
    if (claimed) {
      isClaimed = true;
      runner.begin(claimed);
    }
    return step.runs;
  } finally {
    if (claim && !isClaimed) runner.free(agent);
  }
}

function mayMakeUp({ missed, missedWithinMs }: ScheduleSettings, { lastAt }: MissedTimes, now: number): boolean {
  return missed === "once" && now - lastAt <= missedWithinMs;
}

type Claim = ReturnType<Runner["reserve"]>;

function startOf(parts: RunParts, schedule: ScheduleSettings, plannedAt: number, claim: Claim): ScheduledStart {
  const { overlap, agent } = schedule;
  const step = { name: "schedule.fired", detail: { planned_at: textOf(plannedAt) } };
  const delivery = deliveryOf(parts, schedule, "schedules.fire", step);
  return { plannedAt, overlap, agent, delivery, turn: turnOf(parts, schedule, delivery, claim) };
}

function turnOf(parts: RunParts, schedule: ScheduleSettings, delivery: Delivery, claim: Claim): ScheduledStart["turn"] {
  try {
    const request = requestOf(parts, schedule, delivery);
    const agent = agentFor(parts, request);
    requireAwake(agent, request.model);
    return orderOf(parts, request, agent, claim);
  } catch (error) {
    const { name, message } = GatewayError.from(error);
    // Another gateway, or this one after its restart, starts the turn.
    if (name === "shutting-down") throw error;
    return { refusal: { name, detail: message } };
  }
}

function missedRun(parts: RunParts, schedule: ScheduleSettings, { count, firstAt, lastAt }: MissedTimes, now: number) {
  const detail = {
    planned_at: textOf(lastAt),
    count,
    first_at: textOf(firstAt),
    last_at: textOf(lastAt),
  };
  const delivery = deliveryOf(parts, schedule, "schedules.fire", { name: "schedule.missed", detail }, "missed");
  const atLeast = count < MOST_COUNTED ? "" : "At least ";
  const times =
    count === 1 ? "The planned time" : `${atLeast}${count} planned times from ${textOf(firstAt)} to ${textOf(lastAt)}`;
  const reason = `${times} passed while no gateway could start a run: none ran, the store was unavailable, or a clock was wrong.`;
  const { deliveryId } = delivery;
  const run = { plannedAt: lastAt, at: now, outcome: "missed" as const, reason, deliveryId };
  return { run: { ...run, turnId: undefined, requestedBy: undefined }, agent: schedule.agent, delivery };
}

function textOf(time: number): string {
  return new Date(time).toISOString();
}
