/** The wait that a receiver asks for, in seconds or as a date. Undefined for none, and for any other text. */
export const retryAfterOf = (header: string | undefined, now: number): number | undefined => {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // A date alone: Date.parse takes many a thing for one.
  const at = /^[A-Z][a-z]{2}, .+ GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
};
