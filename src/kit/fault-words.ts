import { nearest } from "./nearest.ts";

/** One fault, as Ajv describes it, and the validators that are made of the contract. */
type Fault = { keyword: string; params: Readonly<Record<string, unknown>> };
type PlacedFault = Fault & { instancePath: string; message?: string | undefined };

/** A fault in words: its place, and a message. */
export type FaultText = { pointer: string; message: string };

const NAMED = 20;
/** A stranger chooses the names of missing things: only this much of a name is repeated. */
const NAME_LIMIT = 100;
const MEANT = /\bdid you mean /i;

const PRINTABLE = "be of printable ASCII characters, without a space at either end";

/** The demands of the patterns in the contract's requests, in words: a caller does not have to read a pattern. */
const FORMS: Readonly<Record<string, string>> = {
  "^[!-~](?:[ -~]{0,254}[!-~])?$": PRINTABLE,
  "^[!-~](?:[ -~]*[!-~])?$": PRINTABLE,
  "^webhook:(?:[ -~]{0,247}[!-~])$": "have the form webhook:<name>, of printable characters",
  "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$":
    "be a time in UTC, written as 2026-11-21T00:00:00.000Z",
  "^dlv_[0-9A-HJKMNP-TV-Z]{26}$": "be the id of a delivery, such as dlv_01M7YN0XEMM1B7E5S8YF3GKP2N",
  "^turn_[0-9A-HJKMNP-TV-Z]{26}$": "be the id of a turn, such as turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
};

/** The demand of a JSON Schema keyword on a value that breaks it, as after "must". Undefined for a keyword without words here. */
export function demandOf({ keyword, params }: Fault): string | undefined {
  const { type, allowedValues, allowedValue, limit, pattern } = params;
  switch (keyword) {
    case "type":
      return `be ${[type].flat().map(withArticle).join(" or ")}`;
    case "enum":
      return `be ${among([allowedValues].flat().map(String))}`;
    case "const":
      return `be ${JSON.stringify(allowedValue)}`;
    case "minimum":
      return `be at least ${limit}`;
    case "maximum":
      return `be at most ${limit}`;
    case "exclusiveMinimum":
      return `be more than ${limit}`;
    case "exclusiveMaximum":
      return `be less than ${limit}`;
    case "multipleOf":
      return `be a multiple of ${params.multipleOf}`;
    case "minLength":
    case "maxLength":
      return `have ${sizeOf(keyword)} ${counted(limit, "character")}`;
    case "minItems":
    case "maxItems":
      return `have ${sizeOf(keyword)} ${counted(limit, "entry", "entries")}`;
    case "minProperties":
    case "maxProperties":
      return `have ${sizeOf(keyword)} ${counted(limit, "field")}`;
    case "uniqueItems":
      return "not contain the same entry twice";
    case "pattern":
      return FORMS[String(pattern)] ?? "have the form that the contract shows";
    default:
      return undefined;
  }
}

/** A fault in a body, in our words. `known`: the names of the fields that there are, for one that is unknown. */
export function faultOf(fault: PlacedFault | undefined, known: readonly string[] = [], body?: unknown): FaultText {
  if (fault === undefined) return { pointer: "", message: "does not match the contract" };
  const { keyword, instancePath: pointer, params, message = "does not match the contract" } = fault;
  if (keyword === "required") {
    const missing = String(params.missingProperty);
    const instead = pointer === "" ? insteadOf(missing, Object(body)) : "";
    return { pointer: below(pointer, missing), message: instead === "" ? "is required" : `is required.${instead}` };
  }
  if (keyword === "additionalProperties") {
    const name = String(params.additionalProperty);
    return { pointer: below(pointer, name), message: `is unknown${hintOf(name, known)}` };
  }
  const demand = demandOf(fault);
  return { pointer, message: demand === undefined ? message : `must ${demand}` };
}

function below(place: string, name: string): string {
  return `${place}/${name.slice(0, NAME_LIMIT).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** A hint for an unknown field name: the name that was probably meant, else the known names; in brackets, behind a blank. */
export function hintOf(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  if (meant !== undefined) return ` (did you mean ${meant}?)`;
  const more = known.length > NAMED ? ", …" : "";
  const are = known.length === 1 ? "is" : "are";
  return known.length === 0 ? "" : ` (there ${are} ${known.slice(0, NAMED).join(", ")}${more})`;
}

/** A name from a caller, in the form in which it is repeated. */
export function quoted(name: string): string {
  return `\`${name.slice(0, NAME_LIMIT)}\``;
}

/** The question about a name that is not there, behind a blank; empty if no known name is like it. */
export function didYouMean(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  return meant === undefined ? "" : ` Did you mean ${quoted(meant)}?`;
}

/** The same; where nothing is like it, the names that there are. */
export function suggest(name: string, known: readonly string[]): string {
  const meant = didYouMean(name, known);
  if (meant !== "" || known.length === 0) return meant;
  const more = known.length > NAMED ? ", …" : "";
  return ` There ${known.length === 1 ? "is" : "are"} ${known.slice(0, NAMED).map(quoted).join(", ")}${more}.`;
}

/** Names that other APIs have for the text of a message. */
const TEXTS = ["text", "message", "content", "prompt", "input", "body"];

/** The sentences about another name that was written for a required field; behind a blank. */
export function insteadOf(missing: string, given: object): string {
  const names = Object.keys(given);
  const written =
    nearest(missing, names) ?? (TEXTS.includes(missing) ? names.find((name) => TEXTS.includes(name)) : undefined);
  return written === undefined ? "" : ` You sent ${quoted(written)}. Did you mean ${quoted(missing)}?`;
}

/** The message as a sentence, so that others can follow. */
export function ended(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** The order of several faults: a misspelt field explains a missing one, so it comes first. */
export function foremost<Fault extends { message: string }>(faults: readonly Fault[]): Fault | undefined {
  return faults.find(({ message }) => MEANT.test(message)) ?? faults[0];
}

function among(values: readonly string[]): string {
  return (values.length > 1 ? "one of " : "") + values.join(", ");
}

function sizeOf(keyword: string): string {
  return keyword.startsWith("min") ? "at least" : "at most";
}

function withArticle(type: unknown): string {
  if (type === "null") return "null";
  return type === "array" ? "a list" : `${/^[aeiou]/.test(String(type)) ? "an" : "a"} ${type}`;
}

function counted(count: unknown, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}
