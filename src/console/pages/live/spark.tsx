const HEIGHT = 40;
const BAR = 6;

/** A small plot of bars. Its words are for those who do not see it. */
export function Spark({ counts }: { counts: readonly number[] }) {
  const most = Math.max(1, ...counts);
  const last = counts.at(-1) ?? 0;
  const total = counts.reduce((sum, one) => sum + one, 0);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${counts.length * BAR} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${total} turns in ${counts.length} minutes, ${last} in the last minute, at most ${most} per minute`}
    >
      {counts.map((value, n) => {
        const height = value === 0 ? 1 : Math.max(3, (value / most) * HEIGHT);
        return (
          <rect key={n} x={n * BAR} y={HEIGHT - height} width={BAR - 1.5} height={height} data-zero={value === 0} />
        );
      })}
    </svg>
  );
}
