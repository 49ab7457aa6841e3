import { isHarmlessAt, isSecretName } from "./secret-fields.ts";
import { HIDDEN } from "./secret-headers.ts";

/** Colours and cursor movements of terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
/** Controls, and characters that would show a reader another order of characters than there is. */
const UNSEEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/gu;
const CREDENTIALS = /\/\/[^\s/@]*@/g;
/** Keys in the formats of known providers (with the secret after an AWS key id), JSON web tokens, HTTP credentials, and private keys. */
const KEYS = new RegExp(
  [
    "\\b(?:sk|rk|gw|gh[opsur]|xox[a-z]|xapp|github_pat|glpat)[-_][\\w-]{8,}",
    "\\bwhsec_[\\w+/=-]{8,}",
    "\\bAIza[\\w-]{16,}",
    "\\b(?:AKIA|ASIA)[A-Z0-9]{16}\\b(?:[\\s:;,|\"']{1,5}[\\w+/]{40}(?![\\w+/]))?",
    "(?<![\\w-])eyJ[\\w-]{8,}\\.[\\w-]{2,}(?:\\.[\\w-]*){0,3}",
    "\\bBearer\\s+[\\w.~+/=-]{8,}",
    "\\bBasic\\s+(?=[A-Za-z+/]*[\\d=])[\\w+/=-]{8,}",
    "-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)",
  ].join("|"),
  "g",
);
/** A variable with its value, or a part of a query. */
const ASSIGNED = /(?<![\w.-])([\w.-]+)=(\\*["']?)([^\s"'&;,\\]+)/g;
const PASSWORD = /\/\/([^\s/@:"]*):[^\s/@"]+@/g;

/** Hides keys in the formats of known providers, passwords in addresses, and values of variables with the name of a secret. */
export function withoutKeys(text: string): string {
  return text
    .replace(KEYS, HIDDEN)
    .replace(PASSWORD, `//$1:${HIDDEN}@`)
    .replace(ASSIGNED, (whole: string, name: string, quote: string, value: string) =>
      isSecretName(name) && !isHarmlessAt(value, 0, name) ? `${name}=${quote}${HIDDEN}` : whole,
    );
}

/**
 * The text of another program, fit for a person and a log line: one line, without control characters, split characters, accounts in addresses and
 * anything that looks like a key, and at most `most` characters long. Empty if nothing is left.
 */
export function cleanSentence(words: string, most = 300): string {
  const clean = words
    .slice(0, most * 8)
    .replace(ESCAPES, "")
    .replace(UNSEEN, " ")
    .replace(/\p{Surrogate}/gu, "")
    .replace(CREDENTIALS, "//")
    .replace(KEYS, "…")
    .replace(/\s+/g, " ")
    .trim();
  return clean.length <= most ? clean : `${clean.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
