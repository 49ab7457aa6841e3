import type { Clock } from "./clock.ts";

/** How much of something there may be: so much at once, and as time passes so much more a second. */
type Allowance = { atOnce: number; aSecond: number };

export function createCredit(clock: Clock, { atOnce, aSecond }: Allowance) {
  let credit = atOnce;
  let counted = clock.monotonic();
  return {
    /** True if there may be one more. */
    has(): boolean {
      const now = clock.monotonic();
      credit = Math.min(atOnce, credit + ((now - counted) / 1000) * aSecond);
      counted = now;
      return credit >= 1;
    },
    /** There was one more. */
    spend(): void {
      credit--;
    },
  };
}

export type Credit = ReturnType<typeof createCredit>;
