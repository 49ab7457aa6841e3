const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const DEPTH_LIMIT = 64;
/** A body of more values would stand in everybody's way while it is parsed and checked: 80 000 keys took 90 ms. */
const VALUES_LIMIT = 10_000;
/** A comma or a bracket comes before each value but the first, and so before each two strings. */
const STRINGS_LIMIT = 2 * (VALUES_LIMIT + 1);

/** True if a text has too few brackets to be nested too deep. Brackets within strings count, too. */
const hasFewBrackets = (text: string): boolean => {
  if (text.length < DEPTH_LIMIT * 2) return true;
  let found = 0;
  for (let at = text.indexOf("{"); at >= 0 && found <= DEPTH_LIMIT; at = text.indexOf("{", at + 1)) found++;
  for (let at = text.indexOf("["); at >= 0 && found <= DEPTH_LIMIT; at = text.indexOf("[", at + 1)) found++;
  return found <= DEPTH_LIMIT;
};

/** The limit that a body passes, as a sentence. Most bodies are too short, and have too few brackets, to need the count. */
export const limitPassed = (text: string): string | undefined => {
  if (text.length < VALUES_LIMIT && hasFewBrackets(text)) return undefined;
  let depth = 0;
  let values = 0;
  let strings = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      // Not JSON, as each value has a text at most, and a name: JSON.parse finds out at once.
      if (++strings > STRINGS_LIMIT) return undefined;
      at = endOfString(text, at) - 1;
    } else if (unit === OPEN_BRACKET || unit === OPEN_BRACE) {
      if (++depth > DEPTH_LIMIT) return `The body is nested deeper than ${DEPTH_LIMIT} levels.`;
      values++;
    } else if (unit === CLOSE_BRACKET || unit === CLOSE_BRACE) depth--;
    else if (unit === COMMA) values++;
    if (values > VALUES_LIMIT) return `The body holds more than ${VALUES_LIMIT} values.`;
  }
  return undefined;
};

/** The end of the JSON string that begins at a quote: behind its other quote, or the end of the text if it has none. */
const endOfString = (text: string, quote: number): number => {
  for (let at = quote + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at + 1;
    if (unit === BACKSLASH) at++;
  }
  return text.length;
};

/** The texts of the values of a list that is JSON, or of the members of an object. */
export const partsOf = (json: string): string[] => {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    const isClosing = unit === CLOSE_BRACKET || unit === CLOSE_BRACE;
    if (unit === QUOTE) at = endOfString(json, at) - 1;
    else if (unit === OPEN_BRACKET || unit === OPEN_BRACE) {
      if (++depth === 1) from = at + 1;
    } else if (depth === 1 && (isClosing || unit === COMMA)) {
      parts.push(json.slice(from, at).trim());
      from = at + 1;
    }
    if (isClosing) depth--;
  }
  return parts;
};

/** The name and the text of the value of a member of an object. */
export const memberOf = (member: string): { name: string; value: string } => {
  const nameEnd = endOfString(member, 0);
  const colon = member.indexOf(":", nameEnd);
  return { name: JSON.parse(member.slice(0, nameEnd)), value: member.slice(colon + 1).trim() };
};
