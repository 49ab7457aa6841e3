/** The retry budget of an agent, and the part of a retry that each ended turn adds to it. */
const MOST_RETRIES = 100;
const EARNED = 0.2;

/**
 * Limits the load that retries add to a backend that is down: an agent's turns fail at their first attempt once its budget is used, until
 * other turns have ended.
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
