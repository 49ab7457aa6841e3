import { ESCAPED, quote } from "#generated/writers/quote.ts";

/** A text as JSON, or `null`. */
export const quoteIf = (text: string | null | undefined): string =>
  text === undefined || text === null ? "null" : quote(text);

/** Texts as JSON, looked at as one: the ids that stand in a row's head. */
export const quoteAll = (texts: readonly (string | null)[]): string =>
  texts.length === 0 || texts.includes(null) || ESCAPED.test(texts.join(""))
    ? JSON.stringify(texts)
    : `["${texts.join('","')}"]`;
