import { isTurnEnd, type Journal } from "#core/sessions/journal.ts";
import type { Clock } from "#kit/clock.ts";
import type { Entry, Turn } from "#store/store.ts";

/** The turn as it ended; `over` when the time was over, the caller had gone, or it will take too long; `erased` when it was deleted with its session. */
export type TurnResult = Turn | "over" | "erased";

/** One look after so long, and then each so long, at all who wait: a timer for each would cost more than most turns. */
const LOOK_MS = 100;
const NOT_WAITING = -1;

/** One caller's wait for the end of a turn. Nothing but `ended` is for others. */
class TurnWait {
  readonly ended: Promise<TurnResult>;
  readonly turn: Turn;
  readonly until: number;
  readonly gone: (() => AbortSignal) | undefined;
  signal: AbortSignal | undefined = undefined;
  at = NOT_WAITING;
  stopListening: () => void = () => {};
  settle: (end: TurnResult) => void = () => {};

  constructor(turn: Turn, until: number, gone: (() => AbortSignal) | undefined) {
    this.turn = turn;
    this.until = until;
    this.gone = gone;
    this.ended = new Promise<TurnResult>((resolve) => {
      this.settle = resolve;
    });
  }

  readonly leave = (): void => this.settle("over");
}

/** Waits for the ends of turns. A wait lasts up to 100 ms longer than it was asked for, but for the shortest. */
export const createTurnWaits = ({ journal, clock }: { journal: Journal; clock: Clock }) => {
  const waits: TurnWait[] = [];
  let stopLooking: (() => void) | undefined;

  const look = (): void => {
    const now = clock.monotonic();
    for (const wait of waits) {
      if (wait.until <= now) wait.leave();
      // A signal costs more than a short turn, so that it is asked for now at the earliest.
      else if (!wait.signal && wait.gone) listenTo(wait, wait.gone());
    }
    stopLooking = clock.after(LOOK_MS, look);
  };

  const listenTo = (wait: TurnWait, signal: AbortSignal): void => {
    wait.signal = signal;
    if (signal.aborted) wait.leave();
    else signal.addEventListener("abort", wait.leave, { once: true });
  };

  journal.onTurnUnkept((turnId) => {
    for (const wait of waits) if (wait.turn.turnId === turnId) wait.leave();
  });

  return {
    /** To be closed when it is over, however it ended. */
    open(turn: Turn, ms: number, gone: (() => AbortSignal) | undefined): TurnWait {
      const wait = new TurnWait(turn, clock.monotonic() + ms, gone);
      wait.stopListening = journal.onTurnEnd(turn, (entry) => wait.settle(entry ? endOf(turn, entry) : "erased"));
      wait.at = waits.length;
      waits.push(wait);
      if (ms < LOOK_MS) clock.after(ms, wait.leave);
      stopLooking ??= clock.after(LOOK_MS, look);
      return wait;
    },
    close(wait: TurnWait): void {
      wait.stopListening();
      wait.signal?.removeEventListener("abort", wait.leave);
      if (wait.at === NOT_WAITING) return;
      const last = waits.pop() as TurnWait;
      if (last !== wait) {
        waits[wait.at] = last;
        last.at = wait.at;
      }
      wait.at = NOT_WAITING;
      if (waits.length > 0) return;
      stopLooking?.();
      stopLooking = undefined;
    },
  };
};

const endOf = (turn: Turn, entry: Entry): TurnResult => (isTurnEnd(entry) ? withEnd(turn, entry) : "over");

const withEnd = (turn: Turn, entry: Extract<Entry, { usage: unknown }>): Turn => {
  // One copy: each costs as much as all else that is done here.
  const ended: Turn = { ...turn, endedAt: entry.at, usage: entry.usage, model: entry.model ?? turn.model };
  if (entry.name === "turn.completed") {
    ended.status = "completed";
    ended.reply = entry.reply;
  } else if (entry.name === "turn.cancelled") {
    ended.status = "cancelled";
    ended.reply = entry.reply || undefined;
  } else {
    ended.status = "failed";
    ended.error = entry.error;
  }
  return ended;
};
