import type { CoreParts } from "#core/parts.ts";
import type { Runner } from "#core/turns/runner.ts";
import type { Started, Turns } from "#core/turns/turns.ts";
import { Worker } from "#core/worker.ts";
import { sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import { reaches } from "#kit/reach.ts";
import { nextTime } from "#kit/schedule-times.ts";
import type { Delivery, ScheduleRun, ScheduleState, TurnStatus } from "#store/store.ts";
import type { ScheduleSettings } from "./settings.ts";
import { deliveryOf, type RunParts, requestOf, runDue } from "./start-run.ts";
import { createScheduleTimes, planOf } from "./times.ts";

/** The longest wait between two checks for due schedules, so that a jump of the wall clock delays runs at most for this time. */
const LONGEST_WAIT_MS = 60_000;
const RETRY_MS = 1_000;
/** The pause between two checks while runs are in progress: each check reads all schedules. */
const NEXT_CHECK_MS = 250;
/** No gateway with the stored plan runs if the schedule is overdue for longer. */
const LONGEST_OVERDUE_MS = 120_000;
/** The time that `asyncDispose` waits for turns that are about to be stored. */
const LAST_STARTS_MS = 1_000;
/** The wall clock was set back if it fell behind the monotonic clock by more than this. */
const SET_BACK_MS = 500;

/** A schedule with its state. `next` are the next five planned times; none while it is paused. */
export type ScheduleStatus = {
  settings: ScheduleSettings;
  /** Hides the secrets of the configuration in a text. */
  hide: (text: string) => string;
  pausedAt: number | undefined;
  next: readonly number[];
  last: (ScheduleRun & { turnStatus: TurnStatus | undefined }) | undefined;
};

/** A caller, by its name, and the only agents that it may use; undefined for all. */
type By = { caller?: string; agents?: readonly string[] | undefined };

/** A request of a caller to run a schedule now. */
export type RunRequest = By & {
  caller: string;
  idempotency?: { key: string; hash: string } | undefined;
  /** The request that asks for it. The run is recorded with its id and address. */
  delivery?: Delivery | undefined;
};

type Due = { schedule: ScheduleSettings; state: ScheduleState; stop: AbortController };
type ScheduleParts = CoreParts & { runner: Runner; turns: Turns };

/**
 * The schedules of the configuration. Each planned time is handled once, by any gateway with the same configuration: the store decides. A time that is
 * too late is recorded as missed.
 */
export class Schedules {
  readonly #parts: RunParts & { turns: Turns };
  readonly #worker: Worker<Due>;
  /** The plan of each schedule that this gateway has planned. */
  readonly #planned = new Map<string, string>();
  /** The schedules with a plan of a gateway that has another configuration. */
  readonly #replaced = new Set<string>();
  #isFirst = true;
  #isRunning = true;
  /** How far the wall clock was ahead of the monotonic one at the last check. */
  #ahead = Infinity;

  constructor(parts: ScheduleParts) {
    const { store, clock, events } = parts;
    this.#parts = { ...parts, times: createScheduleTimes() };
    this.#worker = new Worker<Due>({
      store,
      clock,
      events,
      name: "schedules",
      keyOf: ({ schedule }) => schedule.name,
      run: (due) => this.#run(due),
      giveBack: ({ stop }) => stop.abort(),
      // The next check also returns the next planned time.
      ended: () => this.#worker.wakeIn(this.#worker.all().length === 0 ? 0 : NEXT_CHECK_MS),
      queue: {
        operation: "readSchedules",
        hasRoom: () => this.#isRunning && this.#hasAny(),
        claim: () => this.#claim(),
      },
    });
  }

  /** All schedules, in the configuration's order. */
  async list(): Promise<ScheduleStatus[]> {
    const states = await this.#states();
    return await Promise.all(this.#all().map((schedule) => this.#statusOf(schedule, states.get(schedule.name))));
  }

  /** Throws `schedule-not-found`. */
  async get(name: string): Promise<ScheduleStatus> {
    const schedule = this.#find(name, {});
    return await this.#statusOf(schedule, (await this.#states()).get(name));
  }

  /**
   * Starts a turn of the schedule now, also while it is paused. The plan stays. A repeated request gets the first turn, even if the schedule or its
   * skill was removed. Throws `schedule-not-found`, also if the caller may not use the agent of the schedule.
   */
  async run(name: string, { caller, agents, idempotency, delivery: request }: RunRequest): Promise<Started> {
    const { store, turns, clock, events } = this.#parts;
    const replay = idempotency && (await turns.findReplay({ idempotency, agents }));
    if (replay) return replay;
    const schedule = this.#find(name, { agents });
    const own = deliveryOf(this.#parts, schedule, "schedules.run", {
      name: "schedule.requested",
      detail: { by: caller },
    });
    const { deliveryId, requestId, address, method } = request ?? own;
    const delivery = { ...own, deliveryId, requestId, address, method };
    const started = await turns.start({
      ...requestOf(this.#parts, schedule, delivery),
      agents,
      idempotency,
      startWith: (turn) => store.requestRun(name, { requestedBy: caller, turn }),
    });
    const { turnId } = started.turn;
    if (!started.replayed)
      events.scheduleRan({ schedule: name, outcome: "started", plannedAt: textOf(clock.now()), turnId, caller });
    return started;
  }

  /** Pauses the schedule, or resumes it with its next planned time from now. Throws `schedule-not-found` as `run` does. */
  async setPaused(name: string, paused: boolean, { caller = "", agents }: By = {}): Promise<ScheduleStatus> {
    const { store, clock, events, times } = this.#parts;
    const schedule = this.#find(name, { agents });
    const now = clock.now();
    const before = (await this.#states()).get(name);
    const plan = planOf(schedule);
    const kept = before?.plan === plan ? before : undefined;
    const planned = await times.timesOf(schedule, kept?.anchorAt ?? wholeSecond(now) + (schedule.everyMs ?? 0));
    const nextAt = paused ? undefined : nextTime(planned, now, kept?.handledAt);
    const { state, isChanged } = await store.setSchedulePaused(name, { paused, plan, nextAt, now });
    if (isChanged && paused) events.schedulePaused({ schedule: name, caller });
    if (isChanged && !paused) events.scheduleResumed({ schedule: name, caller });
    return await this.#statusOf(schedule, state);
  }

  /** Checks for due schedules: another plan was stored. */
  wake(): void {
    this.#worker.wake();
  }

  /** Plans the schedules of the current configuration. If the store fails, the next check plans them. */
  async reconfigure(): Promise<void> {
    await this.#plan().catch((error: unknown) => this.#parts.events.storeFailed({ operation: "planSchedule", error }));
    this.#worker.wake();
  }

  /** Starts no more turns. Running turns continue. */
  stop(): void {
    this.#isRunning = false;
    for (const { stop } of this.#worker.all()) stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.#worker.drain({ ms: 0, lastMs: LAST_STARTS_MS });
  }

  #all(): readonly ScheduleSettings[] {
    return [...this.#parts.settings().schedules.values()];
  }

  #hasAny(): boolean {
    return this.#parts.settings().schedules.size > 0;
  }

  /** Finds a schedule. The error for a schedule that the caller may not use is the same as for an unknown name. */
  #find(name: string, by: By): ScheduleSettings {
    const known = this.#all().filter(({ agent }) => reaches(by, agent));
    const schedule = known.find((one) => one.name === name);
    if (schedule) return schedule;
    const meant = suggest(
      name,
      known.map((one) => one.name),
    );
    throw new GatewayError("schedule-not-found", `No schedule is named ${quoted(name)}.${meant}`);
  }

  async #states(): Promise<ReadonlyMap<string, ScheduleState>> {
    const states = this.#hasAny() ? await this.#parts.store.readSchedules() : [];
    return new Map(states.map((state) => [state.name, state]));
  }

  async #statusOf(settings: ScheduleSettings, state: ScheduleState | undefined): Promise<ScheduleStatus> {
    const { hide } = this.#parts;
    if (!state) return { settings, hide, pausedAt: undefined, next: [], last: undefined };
    const { pausedAt, last } = state;
    const next = await this.#parts.times.nextOf(settings, state);
    const turn = last?.turnId === undefined ? undefined : await this.#parts.store.getTurn(last.turnId);
    return { settings, hide, pausedAt, next, last: last && { ...last, turnStatus: turn?.status } };
  }

  async #claim() {
    const { store, clock } = this.#parts;
    await this.#plan();
    const states = await this.#states();
    const now = clock.now();
    const ahead = now - clock.monotonic();
    // The clock of another gateway may be right.
    const isSetBack = !store.shared && ahead < this.#ahead - SET_BACK_MS;
    this.#ahead = ahead;
    const works: Due[] = [];
    let nextDueInMs = LONGEST_WAIT_MS;
    let isUnplanned = false;
    for (const schedule of this.#all()) {
      const { name } = schedule;
      if (this.#worker.get(name)) continue;
      const state = states.get(name);
      const plan = planOf(schedule);
      if (state?.plan !== plan) {
        if (this.#planned.get(name) === plan && this.#isFree(name, state, now))
          isUnplanned = this.#planned.delete(name);
        continue;
      }
      if (state.nextAt === undefined) continue;
      const nextAt = isSetBack ? await this.#planEarlier(schedule, state, now) : state.nextAt;
      if (nextAt === undefined) continue;
      if (nextAt <= now) works.push({ schedule, state: { ...state, nextAt }, stop: new AbortController() });
      else nextDueInMs = Math.min(nextDueInMs, nextAt - now);
    }
    return { works, nextDueInMs, mayBeMore: isUnplanned };
  }

  /** Whether this gateway may store its own plan in place of another one or of none. */
  #isFree(name: string, state: ScheduleState | undefined, now: number): boolean {
    // Another gateway, which does not have this schedule, has removed the plan.
    if (state === undefined || state.plan === "") return true;
    if (!this.#replaced.has(name)) this.#parts.events.scheduleReplaced({ schedule: name, plan: state.plan });
    this.#replaced.add(name);
    const { pausedAt, nextAt = -Infinity } = state;
    return pausedAt === undefined && now - nextAt > LONGEST_OVERDUE_MS;
  }

  async #run({ schedule, state, stop }: Due): Promise<void> {
    const { clock, events } = this.#parts;
    if (stop.signal.aborted) return;
    try {
      for (const { outcome, plannedAt, reason, turnId } of await runDue(this.#parts, schedule, state))
        events.scheduleRan({ schedule: schedule.name, outcome, plannedAt: textOf(plannedAt), reason, turnId });
    } catch (error) {
      const { name } = GatewayError.from(error);
      if (name === "store-unavailable") events.storeFailed({ operation: "runSchedule", error });
      else if (name !== "shutting-down") events.unexpectedError({ error, where: "schedules" });
      await sleep(clock, RETRY_MS, stop.signal);
    }
  }

  /** After the wall clock was set back, plans an earlier time than the stored one. */
  async #planEarlier(schedule: ScheduleSettings, state: ScheduleState, now: number): Promise<number | undefined> {
    const { store, times } = this.#parts;
    const { nextAt: instead = now, anchorAt = instead, handledAt } = state;
    // Until its first run, an interval counts from now: it does not run at once.
    const from = handledAt === undefined ? now + Math.max((schedule.everyMs ?? 0) - 1, 0) : now;
    const nextAt = nextTime(await times.timesOf(schedule, anchorAt), from, handledAt);
    if (instead <= now || nextAt === undefined || nextAt >= instead) return instead;
    return (await store.planSchedule(schedule.name, { plan: planOf(schedule), nextAt, instead })).nextAt;
  }

  /** Plans the schedules that are new or have another plan, and forgets those that were removed. */
  async #plan(): Promise<void> {
    const { store, clock, times } = this.#parts;
    for (const schedule of this.#all()) {
      const { name, everyMs = 0 } = schedule;
      const plan = planOf(schedule);
      if (this.#planned.get(name) === plan) continue;
      const now = clock.now();
      const nextAt = (await times.timesOf(schedule, wholeSecond(now) + everyMs)).after(now);
      await store.planSchedule(name, { plan, nextAt });
      this.#planned.set(name, plan);
      this.#replaced.delete(name);
    }
    const removed = [...this.#planned.keys()];
    // With a shared store, another gateway may still have schedules that this one does not know.
    if (this.#isFirst && store.durable && !store.shared)
      removed.push(...(await store.readSchedules()).map(({ name }) => name));
    this.#isFirst = false;
    for (const name of new Set(removed)) {
      if (this.#parts.settings().schedules.has(name)) continue;
      await store.unplanSchedule(name);
      this.#planned.delete(name);
    }
  }
}

/** Intervals begin at whole seconds, as the times of cron expressions do. */
function wholeSecond(time: number): number {
  return Math.floor(time / 1_000) * 1_000;
}

function textOf(time: number): string {
  return new Date(time).toISOString();
}
