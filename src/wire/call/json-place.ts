/** The place at which a text stops being JSON, for people: lines and columns begin at 1. Undefined for JSON. */
export function placeOfFault(text: string): { line: number; column: number; isEnd: boolean } | undefined {
  const at = faultIn(text);
  if (at === undefined) return undefined;
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: at - lineStart + 1, isEnd: at === text.length };
}

const SPACE = /[ \t\n\r]*/y;
/** A quote, and the characters that stand for themselves in a text. */
const TEXT = /"[ !#-[\]-\uffff]*/y;
const MORE_TEXT = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The first character that cannot stand where it does; the length of a text that ends too soon. */
function faultIn(text: string): number | undefined {
  const open: ("{" | "[")[] = [];
  let at = 0;
  const skip = (token: RegExp): boolean => {
    token.lastIndex = at;
    if (!token.test(text)) return false;
    at = token.lastIndex;
    return true;
  };
  const take = (character: string): boolean => {
    if (text[at] !== character) return false;
    at++;
    return true;
  };
  const string = (): boolean => {
    if (!skip(TEXT)) return false;
    while (skip(ESCAPE)) skip(MORE_TEXT);
    return take('"');
  };
  const key = (): boolean => {
    skip(SPACE);
    if (!string()) return false;
    skip(SPACE);
    return take(":");
  };
  /** Goes on until a value is whole; false where it cannot. */
  const value = (): boolean => {
    for (;;) {
      skip(SPACE);
      if (take("[")) {
        skip(SPACE);
        if (take("]")) return true;
        open.push("[");
      } else if (take("{")) {
        skip(SPACE);
        if (take("}")) return true;
        open.push("{");
        if (!key()) return false;
      } else return text[at] === '"' ? string() : skip(SCALAR);
    }
  };
  for (;;) {
    if (!value()) return at;
    for (;;) {
      skip(SPACE);
      const inside = open.at(-1);
      if (inside === undefined) return at === text.length ? undefined : at;
      if (take(",")) {
        if (inside === "{" && !key()) return at;
        break;
      }
      if (!take(inside === "{" ? "}" : "]")) return at;
      open.pop();
    }
  }
}
