/** The most characters of a stored preview. */
export const PREVIEW_CHARACTERS = 120;

const CUT = "…";

/** The preview that answers show. A stored preview of full length may end inside a secret, so it is searched like a cut text. */
export function showPreview(preview: string | undefined, hide: (text: string) => string): string | null {
  if (preview === undefined) return null;
  // A preview of full length is one character shorter if half of a surrogate pair was removed.
  if (preview.length < PREVIEW_CHARACTERS - 1) return hide(preview);
  const clean = hide(preview + CUT);
  return clean.endsWith(CUT) ? clean.slice(0, -CUT.length) : clean;
}
