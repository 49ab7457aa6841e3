import { endOfString } from "#wire/call/json-limits.ts";

/** A text that came in, known to be JSON, and where in it each call of a batch stands. */
export class CallText {
  readonly #whole: string;
  /** Looked for when somebody asks, and once for all: to go through a text for each of its calls would stand in everybody's way. */
  #bounds: number[] | undefined = undefined;

  constructor(whole: string) {
    this.#whole = whole;
  }

  /** The text of the call that is number `index` of a batch; with -1 the whole. */
  entry(index: number): string {
    if (index < 0) return this.#whole;
    this.#bounds ??= boundsOf(this.#whole);
    return this.#whole.slice(this.#bounds[index * 2], this.#bounds[index * 2 + 1]);
  }
}

/** The text of a call's id. Of two members with one name the later counts, as it does for JSON.parse. */
export const idIn = (call: string): string => {
  let source = "null";
  for (let at = skipSpace(call, 0); call.charCodeAt(at) !== CLOSE_BRACE; ) {
    const name = skipSpace(call, at + 1);
    const nameEnd = endOfValue(call, name);
    const value = skipSpace(call, skipSpace(call, nameEnd) + 1);
    const valueEnd = endOfValue(call, value);
    if (JSON.parse(call.slice(name, nameEnd)) === "id") source = call.slice(value, valueEnd);
    at = skipSpace(call, valueEnd);
  }
  return source;
};

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Where each value of a list begins and ends. */
const boundsOf = (list: string): number[] => {
  const bounds: number[] = [];
  for (let at = skipSpace(list, 0); list.charCodeAt(at) !== CLOSE_BRACKET; ) {
    const from = skipSpace(list, at + 1);
    const to = endOfValue(list, from);
    bounds.push(from, to);
    at = skipSpace(list, to);
  }
  return bounds;
};

const skipSpace = (text: string, from: number): number => {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
};

const endOfValue = (text: string, from: number): number => {
  let at = from;
  let depth = 0;
  do {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      depth++;
      at++;
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
      depth--;
      at++;
    } else at = depth > 0 ? at + 1 : endOfWord(text, at);
  } while (depth > 0);
  return at;
};

/** A number, true, false or null. */
const endOfWord = (text: string, from: number): number => {
  let at = from;
  for (; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit <= 32 || unit === COMMA || unit === CLOSE_BRACKET || unit === CLOSE_BRACE) break;
  }
  return at;
};
