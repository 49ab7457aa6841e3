const CUT = "…";

/** The stored beginning of a text, as answers show it. It may end inside a secret, so it is searched like a text that was cut. */
export function showPreview(preview: string | undefined, hide: (text: string) => string): string | null {
  if (preview === undefined) return null;
  const clean = hide(preview + CUT);
  return clean.endsWith(CUT) ? clean.slice(0, -CUT.length) : clean;
}
