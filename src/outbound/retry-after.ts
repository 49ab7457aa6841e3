/** The wait in milliseconds that the head of an answer asks for. Undefined if it asks for none in a known form. */
export function retryAfterOf(
  { "retry-after-ms": ms, "retry-after": header }: Readonly<Record<string, string | string[] | undefined>>,
  now: number,
): number | undefined {
  if (typeof ms === "string" && /^\d{1,9}$/.test(ms)) return Number(ms);
  const text = typeof header === "string" ? header.trim() : "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // Only a date: Date.parse accepts much else.
  const at = /^[A-Z][a-z]{2}, .+ GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}
