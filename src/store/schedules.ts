/** Schedules: what the store keeps of each, and the part of `store.ts` for them. */

import type { ScheduleOutcome } from "./gateway-news.ts";
import type { Delivery, RecorderLimits } from "./inbound.ts";
import type { TurnOrder, TurnStart } from "./records.ts";

/** A run of a schedule, also one that started no turn. */
export type ScheduleRun = {
  /** The planned time. For a requested run, the time of the request; for missed times, the last of them. */
  plannedAt: number;
  at: number;
  outcome: ScheduleOutcome;
  /** Why no turn started. */
  reason: string | undefined;
  turnId: string | undefined;
  deliveryId: string;
  /** The caller that requested it; undefined for a planned run. */
  requestedBy: string | undefined;
};

export type ScheduleState = {
  name: string;
  /** Identifies the times and the zone. A change of these plans the schedule again. */
  plan: string;
  /** The next planned time, by the wall clock; undefined while it is paused. */
  nextAt: number | undefined;
  /** The first planned time of this plan. An interval counts from it. */
  anchorAt: number | undefined;
  /** The last planned time that was handled: started, skipped or missed. */
  handledAt: number | undefined;
  pausedAt: number | undefined;
  last: ScheduleRun | undefined;
};

/** The work of a planned time that has come. */
export type ScheduleOrder = {
  now: number;
  name: string;
  plan: string;
  plannedAt: number;
  nextAt: number | undefined;
  /** The planned times that passed without a run, as a run and its delivery. */
  missed: { run: ScheduleRun; agent: string; delivery: Delivery } | undefined;
  start: ScheduledStart | undefined;
  recorder: RecorderLimits;
};

/** A turn to start, or the reason why it cannot start. The delivery is the turn's. */
export type ScheduledStart = {
  plannedAt: number;
  /** Whether the turn of the last run may still be open. */
  overlap: "skip" | "queue";
  agent: string;
  delivery: Delivery;
  turn: TurnOrder | { refusal: { name: string; detail: string } };
};

/** `store.ts` states the guarantees of all methods. */
export interface ScheduleStore {
  /**
   * Plans a schedule. An unchanged plan keeps the stored times, for example at a restart or a reload. `instead` is the planned time to replace. A
   * paused schedule stays without a next time. An `instead` that is not later than the last handled time allows the times from there again.
   */
  planSchedule(
    name: string,
    order: { plan: string; nextAt: number | undefined; instead?: number | undefined },
  ): Promise<ScheduleState>;
  /** Forgets the plan of a schedule that was removed. A pause stays until the schedule is resumed. Gateways that still have the schedule plan it again. */
  unplanSchedule(name: string): Promise<void>;
  /** All schedules, in the order of their names. */
  readSchedules(): Promise<ScheduleState[]>;
  /**
   * Handles a planned time, once on all gateways together: moves the plan to `nextAt`, records what was missed, and starts the turn with its delivery. If
   * the turn of the last run is open and may not overlap, or the turn is refused as in `startTurn`, a skipped delivery has the reason. Every run goes to the gateway's
   * stream. Returns no runs and changes nothing if the schedule has another plan or planned time, the planned time was handled, or the schedule is paused.
   */
  runSchedule(order: ScheduleOrder): Promise<ScheduleStep>;
  /** Starts a turn of the schedule at once, as `startTurn` does. The plan stays. */
  requestRun(name: string, order: { requestedBy: string; turn: TurnOrder }): Promise<TurnStart>;
  /** Pauses a schedule, or resumes it with this plan and its next time. A change goes to the gateway's stream. A repeat changes nothing. */
  setSchedulePaused(
    name: string,
    order: { paused: boolean; plan: string; nextAt: number | undefined; now: number },
  ): Promise<{ state: ScheduleState; isChanged: boolean }>;
}

export type ScheduleStep = { runs: readonly ScheduleRun[]; started: TurnStart | undefined };
