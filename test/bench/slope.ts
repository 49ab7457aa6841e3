/** One look at something that changes. */
export type Sample = { atMs: number; value: number };

const MINUTE_MS = 60_000;

/** By how much a minute the values grow: the straight line that is nearest to them (least squares). */
export const slopeOf = (samples: readonly Sample[]): number => {
  if (samples.length < 2) throw new Error("a slope needs two values");
  const mean = (pick: (sample: Sample) => number) => samples.reduce((sum, of) => sum + pick(of), 0) / samples.length;
  const [at, value] = [mean(({ atMs }) => atMs), mean((sample) => sample.value)];
  const both = mean((sample) => (sample.atMs - at) * (sample.value - value));
  const spread = mean(({ atMs }) => (atMs - at) ** 2);
  if (spread === 0) throw new Error("a slope needs two times");
  return (both / spread) * MINUTE_MS;
};
