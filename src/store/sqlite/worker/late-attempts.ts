import type { Claim, Surface, TurnEnd } from "#store/store.ts";
import type { TurnRow } from "./rows.ts";
import type { State } from "./state.ts";

type Late = { node: string; agent: string; surface: Surface; caller: string; until: number };

/** How long the runner of an attempt that lost its claim may take to say what it used. */
const KEPT_MS = 600_000;

/**
 * Attempts that lost their claim while they ran, as their session was deleted or their lease ended: their usage is still to come. They
 * are not kept in the file, as their runners end with the process.
 */
export class LateAttempts {
  readonly #kept = new Map<string, Late>();

  keep({ turnId, attempt, node, agent, surface, caller }: TurnRow, time: number): void {
    this.#kept.set(`${turnId} ${attempt}`, { node, agent, surface, caller, until: time + KEPT_MS });
  }

  /** Answers it once. */
  take({ turnId, fence, node }: Claim): Late | undefined {
    const late = this.#kept.get(`${turnId} ${fence}`);
    if (late?.node !== node) return undefined;
    this.#kept.delete(`${turnId} ${fence}`);
    return late;
  }

  forgetBefore(time: number): void {
    // In the order of their ends.
    for (const [key, { until }] of this.#kept) {
      if (until > time) return;
      this.#kept.delete(key);
    }
  }
}

/** Counts what such an attempt used. There is nothing else to keep of it. */
export const bookLate = (state: State, claim: Claim, { now, usage }: Pick<TurnEnd, "now" | "usage">): void => {
  const late = state.late.take(claim);
  if (late && usage) state.usage.attempt(now, late, usage);
};
