/** A text as JSON, or `null`. */
export const quoteIf = (text: string | null | undefined): string =>
  text === undefined || text === null ? "null" : JSON.stringify(text);

/** The ids that stand in a row's head, as JSON. */
export const quoteAll = (texts: readonly (string | null)[]): string => JSON.stringify(texts);
