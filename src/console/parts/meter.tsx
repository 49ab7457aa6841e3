/** A small bar of how much of something is used. The number stands beside it: the bar alone says nothing. */
export function Meter({ label, used, most }: { label: string; used: number; most: number }) {
  return (
    <span
      class="meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={used}
      data-full={used >= most}
    >
      <span style={{ width: `${Math.min(100, (100 * used) / most)}%` }} />
    </span>
  );
}
