/** Returns true if a text has more than `limit` characters. The characters are counted only if the length does not decide. */
export function isLonger(text: string, limit: number): boolean {
  return text.length > limit && (text.length > limit * 2 || lengthOf(text) > limit);
}

/** The same for fewer characters. */
export function isShorter(text: string, limit: number): boolean {
  return text.length < limit || (text.length < limit * 2 && lengthOf(text) < limit);
}

/** The length of a text in characters, as JSON Schema counts them: a surrogate pair is one. */
function lengthOf(text: string): number {
  let length = text.length;
  for (let index = 0; index + 1 < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      length -= 1;
      index += 1;
    }
  }
  return length;
}
