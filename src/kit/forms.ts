import { BODY_LIMITS } from "./json-limits.ts";
import type { Flaw } from "./mapping-paths.ts";
import { HIDDEN } from "./secret-headers.ts";

/** The media type of forms. */
export const FORM = "application/x-www-form-urlencoded";

/** True for a `Content-Type` of this media type, in UTF-8. */
export function isOfType(media: string, contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  const [named = "", ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  return named === media && parameters.every((part) => part === "" || /^charset="?utf-8"?$/.test(part));
}

export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && contentType !== "application/json" && isOfType(FORM, contentType);
}

/** The name of the field in which senders put JSON. */
export const PAYLOAD = "payload";

/** The fields of a form in their order. A name may occur more than once. */
type Fields = readonly (readonly [name: string, value: string])[];
/** The error of a form, and its name in the error table. */
type FormFlaw = Flaw & { error: "parse-error" | "invalid-request" };

/** Senders encode a bracket at the beginning of a form. A signature does not cover the media type, so JSON could be sent as a form. */
const LIKE_JSON = /^[\s\uFEFF]*[[{]/;

/** The fields of a form, decoded: `+` is a space, and percent escapes are UTF-8. Nothing is decoded if there are more than `most`. */
export function fieldsOf(text: string, most = BODY_LIMITS.values): Fields | FormFlaw {
  if (LIKE_JSON.test(text)) return { error: "parse-error", flaw: "is JSON: send it as application/json." };
  const fields = text.split("&").filter((field) => field !== "");
  if (fields.length === 0) return { error: "parse-error", flaw: "is empty." };
  if (fields.length > most) return { error: "invalid-request", flaw: `has more than ${most} fields.` };
  try {
    return fields.map((field) => {
      const equals = field.indexOf("=");
      const nameEnd = equals < 0 ? field.length : equals;
      return [decode(field.slice(0, nameEnd)), decode(field.slice(nameEnd + 1))];
    });
  } catch {
    return { error: "parse-error", flaw: "has a percent escape that is incomplete or not UTF-8." };
  }
}

/** Throws a URIError. */
function decode(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

/** What can be decoded; incomplete escapes stay, and bytes that are not UTF-8 become U+FFFD. */
function decodeAny(text: string): string {
  const bytesOf = (run: string) => Uint8Array.from(run.slice(1).split("%"), (digits) => Number.parseInt(digits, 16));
  return text.replaceAll("+", " ").replace(/(?:%[\da-f]{2})+/gi, (run) => new TextDecoder().decode(bytesOf(run)));
}

/** A JSON text, which may be invalid, and its place as the subject of a sentence. */
type SentJson = { json: string; place: string };

/**
 * A form as the JSON that mappings read: an object of texts. The values of a repeated name become a list. If the only field is `payload`, its value is
 * the JSON, as Slack and GitHub send it.
 */
export function jsonOfForm(text: string): SentJson | FormFlaw {
  const fields = fieldsOf(text);
  if ("flaw" in fields) return fields;
  const [[name, value]] = fields as [Fields[number]];
  if (fields.length === 1 && name === PAYLOAD) return { json: value, place: "The field `payload` of the form" };
  const values = new Map<string, string | string[]>();
  for (const [key, text] of fields) {
    const before = values.get(key);
    if (Array.isArray(before)) before.push(text);
    else values.set(key, before === undefined ? text : [before, text]);
  }
  return { json: JSON.stringify(Object.fromEntries(values)), place: "The form" };
}

/** The JSON that mappings read from a body, which may be invalid; undefined for a form that cannot be read. */
export function mappedJsonOf(contentType: string | undefined, text: string): string | undefined {
  if (!isForm(contentType)) return text;
  const read = jsonOfForm(text);
  return "flaw" in read ? undefined : read.json;
}

/** A form, which may be malformed, with the values that `change` returns. Fields whose value is the same stay as they were written. */
export function withValues(text: string, change: (name: string, value: string) => string): string {
  const changed = (field: string): string => {
    const nameEnd = field.indexOf("=");
    if (nameEnd < 0) return field;
    const value = decodeAny(field.slice(nameEnd + 1));
    const now = change(decodeAny(field.slice(0, nameEnd)), value);
    const written = () => encodeURIComponent(now.toWellFormed()).replaceAll(encodeURIComponent(HIDDEN), HIDDEN);
    return now === value ? field : `${field.slice(0, nameEnd)}=${written()}`;
  };
  return text.split("&").map(changed).join("&");
}
