import { HIDDEN } from "./secret-headers.ts";

/** Words of names whose values are secrets, in small letters with `_` between the words of camelCase. */
const SECRET =
  /(?:token(?!i[sz])|secret(?!ar)|passw(?:or)?d|passphrase|pwd|credential|authori[sz]ation|cookie|signature|jwt|hmac|(?:api|access|private|signing|encryption|account|master|shared|auth)[^a-z\d]*key)s?/g;
/** A word behind them that says that the value is something else: `token_type`, `SecretName`, `tokens_used`. */
const ABOUT =
  /^[^a-z\d]*(?:names?|arn|types?|counts?|limits?|budget|usage|used|stats|details|versions?|algorithms?|methods?|polic(?:y|ies)|endpoint|ur[il]s?|path|file|length|size|format|status|enabled|required|last|created|updated|changed|rotated|expir[a-z]*|ttl)(?:[^a-z]|$)/;

/** True if a value under this name is a secret: `client_secret`, `SecretAccessKey`, `apiKey`, `DB_PASSWORD`, `credentials`. */
export function isSecretName(name: string): boolean {
  const words = name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toLowerCase();
  let end = -1;
  for (const { index, 0: found } of words.matchAll(SECRET)) end = index + found.length;
  return end >= 0 && !ABOUT.test(words.slice(end));
}

/** Booleans and null are not secrets. */
const FLAG = /(?:true|false|null)(?!\w)/y;
const NUMBER = /-?\d[\d.e+-]*(?![\w])/iy;

/** True for a value that cannot be a secret: a boolean, null, or a number of tokens such as `max_tokens`. */
export function isHarmlessAt(text: string, from: number, name: string): boolean {
  FLAG.lastIndex = from;
  NUMBER.lastIndex = from;
  return FLAG.test(text) || (/tokens/i.test(name) && NUMBER.test(text));
}

/** A field of JSON. In JSON within a string of JSON, backslashes stand before the quotes. */
const FIELD = /"([^"\\]*)(\\*)"\s*:\s*/g;

/**
 * A text with JSON in it, which may be cut anywhere: every value of a field with the name of a secret is replaced, including lists and objects. With
 * `onlyTexts`, only strings are replaced, and JSON within a string is not searched.
 */
export function hideSecretFields(text: string, { onlyTexts = false } = {}): string {
  let clean = "";
  let done = 0;
  for (const { index, 0: field, 1: name = "", 2: backslashes = "" } of text.matchAll(FIELD)) {
    const from = index + field.length;
    if (index < done || from >= text.length || !isSecretName(name) || isHarmlessAt(text, from, name)) continue;
    if (onlyTexts && (backslashes !== "" || text[from] !== '"')) continue;
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
