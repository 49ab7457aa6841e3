import type { Claim, Surface, TurnEnd } from "#store/store.ts";
import type { TurnRow } from "./rows.ts";
import type { State } from "./state.ts";

type Late = { node: string; agent: string; surface: Surface; caller: string; until: number };

/** How long the runner of an attempt that lost its claim may take to say what it used. */
const KEPT_MS = 600_000;

/** Attempts that lost their claim while they ran, as their session was deleted or their lease ended: their usage is still to come. */
export class LateAttempts {
  #kept = new Map<string, Late>();

  keep({ turnId, attempt, node, agent, surface, caller }: TurnRow, time: number): void {
    this.#kept.set(keyOf(turnId, attempt), { node, agent, surface, caller, until: time + KEPT_MS });
  }

  /** Answers it once. */
  take({ turnId, fence, node }: Claim): Late | undefined {
    const key = keyOf(turnId, fence);
    const late = this.#kept.get(key);
    if (late?.node !== node) return undefined;
    this.#kept.delete(key);
    return late;
  }

  forgetBefore(time: number): void {
    for (const [key, { until }] of this.#kept) {
      // In the order in which they were kept, which is that of their ends.
      if (until > time) return;
      this.#kept.delete(key);
    }
  }
}

const keyOf = (turnId: string, attempt: number): string => `${turnId} ${attempt}`;

/** Counts what such an attempt used. There is nothing else to keep of it. */
export const bookLate = (state: State, claim: Claim, { now, usage }: Pick<TurnEnd, "now" | "usage">): void => {
  const late = state.late.take(claim);
  if (late && usage) state.usage.attempt(now, late, usage);
};
