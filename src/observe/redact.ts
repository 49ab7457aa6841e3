import { isSecretName } from "#kit/secret-fields.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import { decode, type Escapes, formsOf } from "./secret-forms.ts";
import { createTextFinder, type TextFinder } from "./text-finder.ts";

/** The most forms of earlier secrets that stay hidden: secrets rotate, and memory must not grow with that. */
const MOST_FORMS = 4096;
/** The most times that an escape may itself be escaped. */
const MOST_DECODED = 2;
/** The most characters of an escape for one character: `%255Cu0073`. */
const LONGEST_ESCAPE = 10;

/** Few names of fields exist; those of unauthenticated callers are not cached. */
const MOST_KEYS = 1000;
const secretKeys = new Map<string, boolean>();

/** True if a field of this name holds a secret, whatever its value: `Authorization`, `x-gateway-token`, `client_secret`. */
export function isSecretKey(key: string): boolean {
  const known = secretKeys.get(key);
  if (known !== undefined) return known;
  const isSecret = isSecretName(key);
  if (secretKeys.size < MOST_KEYS) secretKeys.set(key, isSecret);
  return isSecret;
}

interface Redactor {
  /**
   * Hides these secrets in every text, until the next call. Of earlier secrets the newest forms stay hidden, up to 4096.
   */
  hide(secrets: Iterable<string>): void;
  /** The text with every hidden secret replaced, in any form; the same text if there is none. */
  text(text: string): string;
  /** A line of JSON with every hidden secret replaced. It stays JSON, unless a secret spans its punctuation. */
  jsonLine(line: string): string;
  /** The length of the longest form: code that cuts a text keeps this much beyond the cut until the text is redacted. */
  longest(): number;
}

/** The mark at the end of a cut text. */
const CUT = "…";
/** A cut secret is recognised by this many of its first characters after the scheme of an address or header. */
const HEAD = 6;
const SCHEME = /^(?:[a-z][a-z\d+.-]*:\/\/|[a-z]+ +)?/i;

const BOTH: Escapes = { percent: true, backslash: true };
/** For secrets that themselves hold what looks like an escape of the other kind. */
const EITHER: readonly Escapes[] = [
  { percent: true, backslash: false },
  { percent: false, backslash: true },
];

/** A beginning that several forms share. `other` matches a character that none of the forms contains; `quoted` lists the forms with quotes. */
type Head = { other: RegExp; quoted: string[] };

/** A part of a text, from its first place to the one after its last. */
type Range = [from: number, to: number];

export function createRedactor(): Redactor {
  /** The hidden forms, the newest last. True for one that is a part of base64. */
  const known = new Map<string, boolean>();
  let finder: TextFinder | undefined;
  let escaping: readonly Escapes[] = [];
  let longest = 0;
  /** The beginnings of the whole forms, and the length of the longest form. */
  let heads = new Map<string, Head>();
  let headFinder: TextFinder | undefined;
  let longestWhole = 0;

  /** Every secret in the text, also where two overlap. `places` maps to positions in the text that it was decoded from. */
  const addRanges = (ranges: Range[], text: string, places: Uint32Array | undefined): void => {
    const { find, at } = finder as TextFinder;
    for (let place = find(text, 0); place >= 0; place = find(text, place + 1)) {
      const form = at(text, place);
      const isPart = known.get(form) === true;
      const from = isPart && isBase64(text, place - 1) ? place - 1 : place;
      const end = place + form.length;
      const to = isPart && isBase64(text, end) ? end + 1 : end;
      ranges.push([places ? (places[from] as number) : from, places ? (places[to] as number) : to]);
    }
  };

  const addDecodedRanges = (ranges: Range[], text: string, escapes: Escapes): void => {
    let places: Uint32Array | undefined;
    let decoded = decode(text, escapes);
    for (let times = 0; decoded !== undefined && times < MOST_DECODED; times++) {
      const outside = places;
      ({ places } = decoded);
      if (outside) for (let n = 0; n < places.length; n++) places[n] = outside[places[n] as number] as number;
      addRanges(ranges, decoded.text, places);
      decoded = decode(decoded.text, escapes);
    }
  };

  /**
   * Adds the cut secrets. After a head, every text up to the mark is hidden: a caller whose text is returned
   * could otherwise guess a secret character by character.
   */
  const addCutRanges = (ranges: Range[], text: string, first: number): void => {
    if (headFinder === undefined) return;
    const { find, at } = headFinder;
    let end = first;
    for (let from = find(text, 0); from >= 0; from = find(text, from + 1)) {
      const head = at(text, from);
      if (end < from + head.length) end = text.indexOf(CUT, from + head.length);
      if (end < 0) return;
      if (end - from > longestWhole) continue;
      const part = text.slice(from, end);
      const { other, quoted } = heads.get(head) as Head;
      if (other.test(part.slice(head.length)) && !quoted.some((form) => form.startsWith(part))) continue;
      ranges.push([from, end]);
      from = end - 1;
    }
  };

  const text = (value: string): string => {
    if (finder === undefined) return value;
    const isFound = finder.find(value, 0) >= 0;
    const isEscaped = value.includes("%") || value.includes("\\");
    const cut = value.indexOf(CUT);
    if (!isFound && !isEscaped && cut < 0) return value;
    const ranges: Range[] = [];
    if (cut >= 0) addCutRanges(ranges, value, cut);
    if (isFound) addRanges(ranges, value, undefined);
    // Without backslashes, encoded or not, each kind of decoding returns the same.
    const ways = isEscaped && !/\\|5c/i.test(value) ? [BOTH] : escaping;
    if (isEscaped) for (const escapes of ways) addDecodedRanges(ranges, value, escapes);
    return without(value, ranges);
  };
  const hideIn = (_key: string, value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    return typeof value === "number" && text(String(value)) !== String(value) ? HIDDEN : value;
  };

  return {
    hide: (secrets) => {
      const current = new Set<string>();
      for (const secret of secrets) {
        const { whole, parts } = formsOf(secret);
        for (const form of [...whole, ...parts]) {
          current.add(form);
          const isPart = known.get(form) !== false && !whole.includes(form);
          known.delete(form); // a form that is seen again is the newest again
          known.set(form, isPart);
        }
      }
      const surplus = known.size - current.size - MOST_FORMS;
      for (const form of [...known.keys()].slice(0, Math.max(0, surplus))) known.delete(form);
      const forms = [...known.keys()];
      longest = LONGEST_ESCAPE * forms.reduce((most, { length }) => Math.max(most, length), 0);
      const whole = forms.filter((form) => form.length > HEAD && known.get(form) === false);
      longestWhole = whole.reduce((most, { length }) => Math.max(most, length), 0);
      heads = headsOf(whole);
      headFinder = heads.size === 0 ? undefined : createTextFinder([...heads.keys()]);
      escaping = forms.some((form) => /%[0-9a-f]{2}|\\/i.test(form)) ? [BOTH, ...EITHER] : [BOTH];
      finder = forms.length === 0 ? undefined : createTextFinder(forms);
    },
    text,
    jsonLine: (line) => {
      const clean = text(line);
      if (clean === line) return line;
      const end = line.endsWith("\n") ? "\n" : "";
      try {
        return text(`${JSON.stringify(JSON.parse(line, hideIn))}${end}`);
      } catch {
        return clean;
      }
    },
    longest: () => longest,
  };
}

function headsOf(forms: readonly string[]): Map<string, Head> {
  const heads = new Map<string, Head>();
  for (const form of forms) {
    const scheme = SCHEME.exec(form)?.[0] ?? "";
    const start = form.slice(0, Math.min(scheme.length + HEAD, form.length - 1));
    const { other, quoted } = heads.get(start) ?? { other: /[\s"]/, quoted: [] };
    if (form.includes('"')) quoted.push(form);
    heads.set(start, { other: /\s/.test(form) ? /"/ : other, quoted });
  }
  return heads;
}

function isBase64(text: string, place: number): boolean {
  return /^[\w+/-]$/.test(text.charAt(place));
}

/** The text with these parts replaced. Parts that touch or overlap are one. */
function without(text: string, ranges: Range[]): string {
  if (ranges.length === 0) return text;
  ranges.sort(([a], [b]) => a - b);
  let clean = "";
  let done = 0;
  let [from, to] = ranges[0] as Range;
  for (const [nextFrom, nextTo] of ranges) {
    if (nextFrom <= to) {
      to = Math.max(to, nextTo);
      continue;
    }
    clean += text.slice(done, from) + HIDDEN;
    done = to;
    [from, to] = [nextFrom, nextTo];
  }
  return clean + text.slice(done, from) + HIDDEN + text.slice(to);
}
