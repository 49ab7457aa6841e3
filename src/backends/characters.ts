export const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Puts pieces of a text together where a character was cut in two: its first half waits for the other one. */
export const createJoiner = () => {
  let half = "";
  return (cut: string): string => {
    const text = half === "" ? cut : half + cut;
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    half = isHalf ? text.slice(-1) : "";
    return isHalf ? text.slice(0, -1) : text;
  };
};
