const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const BYTES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

/** `30m` in milliseconds. The schema has let nothing else through. */
export function milliseconds(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(amount) * MS[unit as keyof typeof MS];
}

/** `256KiB`, or a number, in bytes. The schema has let nothing else through. */
export function bytes(size: string | number): number {
  if (typeof size === "number") return size;
  const [, amount, unit] = /^(\d+) ?(B|KiB|MiB|GiB)$/.exec(size) ?? [];
  return Number(amount) * BYTES[unit as keyof typeof BYTES];
}
