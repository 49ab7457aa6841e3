import { HIDDEN } from "./secret-headers.ts";

/** The name of a JSON field that holds a secret, as a part of a regular expression. */
export const SECRET_NAME =
  '[^"\\\\]*(?:token|secret|passwd|password|passphrase|api_?-?key|private_?-?key|signature|authorization|cookie)s?';
/** Also in JSON within a string of JSON, where backslashes stand before quotes. */
const SECRET_FIELD = new RegExp(`"${SECRET_NAME}(\\\\*)"\\s*:\\s*`, "gi");

/** A text with JSON in it, which may be cut anywhere: every value of a field with the name of a secret is replaced, also lists and objects. */
export function hideSecretFields(text: string): string {
  let clean = "";
  let done = 0;
  for (const found of text.matchAll(SECRET_FIELD)) {
    const [field, backslashes] = found;
    const from = found.index + field.length;
    if (found.index < done || from >= text.length) continue;
    clean += `${text.slice(done, from)}${backslashes}"${HIDDEN}${backslashes}"`;
    done = endOfValue(text, from);
  }
  return clean + text.slice(done);
}

const PUNCTUATION = /[\s,\]}"\\]/g;

/** The end of the JSON value that begins at a place; the end of the text if the value is cut. */
function endOfValue(text: string, from: number): number {
  let at = from;
  let depth = 0;
  do {
    const char = text.charAt(at);
    if (char === '"' || char === "\\") at = endOfString(text, at);
    else if (char === "{" || char === "[") {
      depth++;
      at++;
    } else if (depth === 0) return indexOf(PUNCTUATION, text, at);
    else {
      if (char === "}" || char === "]") depth--;
      at++;
    }
  } while (depth > 0 && at < text.length);
  return at;
}

/** The end of a string whose quotes may have backslashes before them. Backslashes without a quote are skipped. */
function endOfString(text: string, from: number): number {
  let at = indexOf(/[^\\]/g, text, from);
  const before = at - from;
  if (text[at] !== '"') return at;
  for (;;) {
    const start = indexOf(/[\\"]/g, text, at + 1);
    const end = indexOf(/[^\\]/g, text, start);
    if (end === text.length) return end;
    // The value itself may have escaped quotes, and backslashes at its end.
    if (text[end] === '"' && (end - start) % (2 * before + 2) === before) return end + 1;
    at = text[end] === '"' ? end : end - 1;
  }
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}
