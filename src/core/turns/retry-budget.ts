/** Retries of an agent's turns that may be made at once, and how much of one each turn that ended gives back. */
const MOST_RETRIES = 100;
const EARNED = 0.2;

/**
 * Bounds what retries add to the load of a backend that is down: past its budget an agent's turns fail with their first attempt, until
 * others have ended.
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
