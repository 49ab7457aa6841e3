export function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Joins pieces of a text in which a character is split: its first half is held until the other one arrives. */
export function createJoiner() {
  let half = "";
  return (cut: string): string => {
    const text = half === "" ? cut : half + cut;
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    half = isHalf ? text.slice(-1) : "";
    return isHalf ? text.slice(0, -1) : text;
  };
}
