/** What may be held for a while. */
export interface Holdable {
  /** The hold is over. Also called of what has ended since. */
  release(): void;
}

/**
 * A piece of a reply costs most by coming alone: it is read, acknowledged and written by itself. While the event loop is short of time, connections
 * are left alone for a moment after each read, and what comes meanwhile is read and written in one go.
 */
export interface Gathering {
  /** For how long, in milliseconds, at most MOST_MS; 0 while the event loop has time or answers are few. It changes in small steps. */
  readonly holdMs: number;
  /** What time it is for who asks how fast a reply flows. */
  now(): number;
  /** An answer is under way; each is ended once. That they are few again may be seen a moment later. */
  begin(): void;
  end(): void;
  /**
   * Releases it once, `holdMs` from now or a little later, never within this call; who was held first first. Until then the process stays
   * alive, which connections that are not read do not see to.
   */
  hold(one: Holdable): void;
}

export type GatheringWish = {
  /** The share of its time that the event loop has worked since this was last asked. */
  loopUse(): number;
  /** With fewer answers nothing is looked at: the event loop is not busy by their pieces. */
  many?: number;
  lookMs?: number;
};

/** A list and no array, as under load it is never empty: nothing of what is released is kept. */
type Held = { one: Holdable; until: number; next: Held | undefined };

const MANY = 100;
const LOOK_MS = 100;
export const MOST_MS = 60;
const BUSY = 0.55;
const IDLE = 0.45;
const UP_MS = 10;
const DOWN_MS = 5;
const TICK_MS = 2;
/** So many are released in one go: what else has come, as the beginning of another reply, is read between them and the next. */
const AT_ONCE = 8;

export const createGathering = ({ loopUse, many = MANY, lookMs = LOOK_MS }: GatheringWish): Gathering => {
  let holdMs = 0;
  let answers = 0;
  let looks: NodeJS.Timeout | undefined;
  let ticks: NodeJS.Timeout | undefined;
  let first: Held | undefined;
  let last: Held | undefined;
  let isGoingOn = false;

  const look = (): void => {
    const use = loopUse();
    if (answers < many) {
      clearInterval(looks);
      looks = undefined;
      holdMs = 0;
    } else if (use > BUSY) holdMs = Math.min(MOST_MS, holdMs + UP_MS);
    else if (use < IDLE) holdMs = Math.max(0, holdMs - DOWN_MS);
  };

  const releaseDue = (): void => {
    const now = performance.now();
    for (let left = AT_ONCE; left > 0 && first && first.until <= now; left--) {
      const due: Held = first;
      first = due.next;
      if (!first) last = undefined;
      // What is old and gone would keep what is young alive.
      due.next = undefined;
      due.one.release();
    }
    if (!first) {
      clearInterval(ticks);
      ticks = undefined;
    } else if (first.until <= now) {
      isGoingOn = true;
      setImmediate(goOn);
    }
  };
  const goOn = (): void => {
    isGoingOn = false;
    releaseDue();
  };
  const tick = (): void => {
    if (!isGoingOn) releaseDue();
  };

  return {
    get holdMs() {
      return holdMs;
    },
    now: () => performance.now(),
    begin() {
      if (++answers < many || looks) return;
      loopUse();
      looks = setInterval(look, lookMs).unref();
    },
    end() {
      answers--;
    },
    hold(one) {
      // Never before who was held when it was for longer.
      const until = Math.max(last?.until ?? 0, performance.now() + holdMs);
      const added: Held = { one, until, next: undefined };
      if (last) last.next = added;
      else first = added;
      last = added;
      ticks ??= setInterval(tick, TICK_MS);
    },
  };
};

let seen: ReturnType<typeof performance.eventLoopUtilization> | undefined;

const loopUse = (): number => {
  const now = performance.eventLoopUtilization();
  const { utilization } = performance.eventLoopUtilization(now, seen);
  seen = now;
  return utilization;
};

/** That of all connections of this process, as they share its event loop. */
export const gathering = createGathering({ loopUse });
