/** The retry budget of an agent, and the fraction of a retry that each ended turn adds to the budget. */
const MOST_RETRIES = 100;
const EARNED = 0.2;

/**
 * Limits the load that retries add to a backend that is down. Once an agent's budget is used up, its turns fail at their first attempt, until other
 * turns have ended.
 */
export function createRetryBudget() {
  const left = new Map<string, number>();
  return {
    take(agent: string): boolean {
      const now = left.get(agent) ?? MOST_RETRIES;
      if (now < 1) return false;
      left.set(agent, now - 1);
      return true;
    },
    earn(agent: string): void {
      const now = left.get(agent);
      if (now === undefined) return;
      if (now + EARNED >= MOST_RETRIES) left.delete(agent);
      else left.set(agent, now + EARNED);
    },
  };
}

export type RetryBudget = ReturnType<typeof createRetryBudget>;
