import { type Flaw, type Lookup, lookUp, type MappedRequest, parseLookup, textOf } from "./mapping-paths.ts";

/** Texts and placeholders, in order. */
export type Template = { parts: readonly (string | Placeholder)[] };

/** The first of its places with a value that is not empty. `written` is its text between the braces. */
export type Placeholder = { written: string; lookups: readonly Lookup[] };

/** A template filled in with the values of a request. `without` are the placeholders that have no value. */
export type Filled = { text: string; without: string[] };

/** `{{`, a placeholder, or a brace that starts neither. */
const BRACE = /\{\{|\{([^{}\r\n]*)\}|\{/g;

/** A bar that separates two places. Any other bar belongs to a key or to the name of a header. */
const BAR = /\|(?=(?:body|headers)\.)/;

/** A template's parts. `{{` is a brace; any other brace starts a placeholder: `{body.<path>}`, `{headers.<name>}`, or several with `|` between them. */
export function parseTemplate(text: string): Template | Flaw {
  const parts: (string | Placeholder)[] = [];
  let literal = "";
  let from = 0;
  for (const found of text.matchAll(BRACE)) {
    literal += text.slice(from, found.index);
    from = found.index + found[0].length;
    if (found[0] === "{{") {
      literal += "{";
      continue;
    }
    const placeholder = placeholderOf(found[1], text.slice(found.index));
    if ("flaw" in placeholder) return placeholder;
    if (literal !== "") parts.push(literal);
    parts.push(placeholder);
    literal = "";
  }
  literal += text.slice(from);
  if (literal !== "") parts.push(literal);
  return { parts };
}

function placeholderOf(inside: string | undefined, rest: string): Placeholder | Flaw {
  if (inside === undefined || !/^(?:body|headers)\../.test(inside)) {
    const shown = /^\{[^{}\r\n]{0,20}\}?/.exec(rest)?.[0];
    const flaw = `which is not a placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.`;
    return { flaw: `holds \`${shown}\`, ${flaw}` };
  }
  if (/\s\|\s*(?:body|headers)\.|\|\s+(?:body|headers)\./.test(inside))
    return { flaw: `holds {${inside}}, which has a space next to \`|\`: write {body.a|body.b}.` };
  const lookups: Lookup[] = [];
  for (const path of inside.split(BAR)) {
    const lookup = parseLookup(path);
    if ("flaw" in lookup) return { flaw: `holds {${path}}, which ${lookup.flaw}` };
    lookups.push(lookup);
  }
  return { written: inside, lookups };
}

/** The value of a placeholder as text: empty if none of its places has one. */
function filledWith({ lookups }: Placeholder, request: MappedRequest): string {
  for (const lookup of lookups) {
    const text = textOf(lookUp(lookup, request));
    if (text !== undefined && text !== "") return text;
  }
  return "";
}

/** The filled-in template; undefined if it is longer than `limit`. Inserted values are not filled in again. A missing value leaves nothing. */
export function fillTemplate({ parts }: Template, request: MappedRequest, limit: number): string | undefined {
  let text = "";
  for (const part of parts) {
    text += typeof part === "string" ? part : filledWith(part, request);
    if (text.length > limit) return undefined;
  }
  return text;
}

/** The filled-in template, each value in the form that `write` gives it, and the placeholders without a value. */
export function fillNamed(
  { parts }: Template,
  request: MappedRequest,
  write: (value: string) => string = (value) => value,
): Filled {
  const without: string[] = [];
  let text = "";
  for (const part of parts) {
    const value = typeof part === "string" ? part : filledWith(part, request);
    if (value === "" && typeof part !== "string") without.push(part.written);
    text += typeof part === "string" ? part : write(value);
  }
  return { text, without };
}
