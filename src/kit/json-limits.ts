const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** The most levels and values of a JSON text. JSON with many small values takes long to parse, even if it is short. */
export type JsonLimits = { depth: number; values: number };

/** The limits for the body of a call: parsing and checking more would block other calls. */
export const BODY_LIMITS: JsonLimits = { depth: 64, values: 10_000 };

/** The limits for JSON from an agent, a model or a tool server. Large legitimate messages are within them. */
export const ANSWER_LIMITS: JsonLimits = { depth: 1_000, values: 100_000 };

/** True if a text has too few brackets to be nested too deeply. Brackets within strings count, too. */
function hasFewBrackets(text: string, most: number): boolean {
  if (text.length < most * 2) return true;
  let found = 0;
  for (let at = text.indexOf("{"); at >= 0 && found <= most; at = text.indexOf("{", at + 1)) found++;
  for (let at = text.indexOf("["); at >= 0 && found <= most; at = text.indexOf("[", at + 1)) found++;
  return found <= most;
}

/** The limit that a JSON text exceeds, as the predicate of a sentence. Most texts are too short, and have too few brackets, to be counted. */
export function limitPassed(text: string, most: JsonLimits): string | undefined {
  if (text.length < most.values && hasFewBrackets(text, most.depth)) return undefined;
  // A comma or a bracket comes before each value but the first, and so before each two strings.
  const mostStrings = 2 * (most.values + 1);
  let depth = 0;
  let values = 0;
  let strings = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      // Not JSON, which has at most two strings for each value, its name and its text. JSON.parse fails soon.
      if (++strings > mostStrings) return undefined;
      at = endOfString(text, at) - 1;
    } else if (unit === OPEN_BRACKET || unit === OPEN_BRACE) {
      if (++depth > most.depth) return `is nested deeper than ${most.depth} levels`;
      values++;
    } else if (unit === CLOSE_BRACKET || unit === CLOSE_BRACE) depth--;
    else if (unit === COMMA) values++;
    if (values > most.values) return `holds more than ${most.values} values`;
  }
  return undefined;
}

/** The end of the JSON string that starts at a quote: after its closing quote, or the end of the text if it has none. */
function endOfString(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slash = end;
    while (text.charCodeAt(slash - 1) === BACKSLASH) slash--;
    if ((end - slash) % 2 === 0) return end + 1;
  }
  return text.length;
}

/** The texts of the values of a list that is JSON, or of the members of an object. */
export function partsOf(json: string): string[] {
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
}

/** The name and the text of the value of a member of an object. */
export function memberOf(member: string): { name: string; value: string } {
  const nameEnd = endOfString(member, 0);
  const colon = member.indexOf(":", nameEnd);
  return { name: JSON.parse(member.slice(0, nameEnd)), value: member.slice(colon + 1).trim() };
}
