/** The most characters of a stored preview. */
export const PREVIEW_CHARACTERS = 120;

const CUT = "…";

/** The stored beginning of a text, as answers show it. A full one may end inside a secret, so it is searched like a text that was cut. */
export function showPreview(preview: string | undefined, hide: (text: string) => string): string | null {
  if (preview === undefined) return null;
  // A cut pair of surrogates makes it shorter by one.
  if (preview.length < PREVIEW_CHARACTERS - 1) return hide(preview);
  const clean = hide(preview + CUT);
  return clean.endsWith(CUT) ? clean.slice(0, -CUT.length) : clean;
}
