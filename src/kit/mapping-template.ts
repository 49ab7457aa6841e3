import { type Flaw, type Lookup, lookUp, type MappedRequest, parseLookup, textOf } from "./mapping-paths.ts";

/** Texts and the places between them, in order. */
export type Template = { parts: readonly (string | Lookup)[] };

/** `{{`, a placeholder, or a brace that starts neither. */
const BRACE = /\{\{|\{([^{}\r\n]*)\}|\{/g;

/** A template's parts. `{{` is a brace; any other brace starts `{body.<path>}` or `{headers.<name>}`. */
export function parseTemplate(text: string): Template | Flaw {
  const parts: (string | Lookup)[] = [];
  let literal = "";
  let from = 0;
  for (const found of text.matchAll(BRACE)) {
    literal += text.slice(from, found.index);
    from = found.index + found[0].length;
    if (found[0] === "{{") {
      literal += "{";
      continue;
    }
    const lookup = placeholder(found[1], text.slice(found.index));
    if ("flaw" in lookup) return lookup;
    if (literal !== "") parts.push(literal);
    parts.push(lookup);
    literal = "";
  }
  literal += text.slice(from);
  if (literal !== "") parts.push(literal);
  return { parts };
}

function placeholder(inside: string | undefined, rest: string): Lookup | Flaw {
  if (inside === undefined || !/^(?:body|headers)\../.test(inside)) {
    const shown = /^\{[^{}\r\n]{0,20}\}?/.exec(rest)?.[0];
    const flaw = `which is not a placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.`;
    return { flaw: `holds \`${shown}\`, ${flaw}` };
  }
  const lookup = parseLookup(inside);
  return "flaw" in lookup ? { flaw: `holds {${inside}}, which ${lookup.flaw}` } : lookup;
}

/** The filled-in template; undefined if it is longer than `limit`. Inserted values are not filled in again. A missing value leaves nothing. */
export function fillTemplate({ parts }: Template, request: MappedRequest, limit: number): string | undefined {
  let text = "";
  for (const part of parts) {
    text += typeof part === "string" ? part : (textOf(lookUp(part, request)) ?? "");
    if (text.length > limit) return undefined;
  }
  return text;
}
