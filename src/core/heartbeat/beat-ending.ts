import { isTurnEnd, type Journal } from "#core/sessions/journal.ts";
import type { Turn } from "#store/store.ts";

/** Hears of a turn's end from before it can come. */
export class Ending {
  status: Turn["status"] | undefined = undefined;
  readonly #told = new AbortController();
  stop = (): void => {};

  /** The turn has ended, or was erased. */
  get told(): AbortSignal {
    return this.#told.signal;
  }

  listen(journal: Journal, turn: Turn): void {
    this.stop = journal.onTurnEnd(turn, (entry) => {
      if (entry && isTurnEnd(entry)) this.status = statusOf[entry.name];
      this.#told.abort();
    });
  }
}

const statusOf = {
  "turn.completed": "completed",
  "turn.failed": "failed",
  "turn.cancelled": "cancelled",
} as const;
