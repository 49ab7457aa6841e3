import { isUtf8 } from "node:buffer";
import { isForm, mappedJsonOf, PAYLOAD, withValues } from "#kit/forms.ts";
import { hideSecretFields, isSecretName } from "#kit/secret-fields.ts";
import { HIDDEN } from "#kit/secret-headers.ts";

type ShownBody = { body: string; encoding: "utf-8" | "base64" } | { body: null; encoding: null };

/** A recorded body as replies show it: fields with the name of a secret are hidden. The stored body, and a replay, have them. */
export function showBody(body: string | undefined, contentType: string | undefined): ShownBody {
  if (body === undefined) return { body: null, encoding: null };
  const bytes = Buffer.from(body, "latin1");
  if (!isUtf8(bytes)) return { body: bytes.toString("base64"), encoding: "base64" };
  const text = bytes.toString("utf8");
  return { body: isForm(contentType) ? withValues(text, hideInField) : hideInJson(text), encoding: "utf-8" };
}

function hideInJson(json: string): string {
  return hideSecretFields(json, { onlyTexts: true });
}

function hideInField(name: string, value: string): string {
  if (name === PAYLOAD) return hideInJson(value);
  return value !== "" && isSecretName(name) ? HIDDEN : value;
}

/** The JSON of an edited body. `[hidden]` is replaced with the value that the stored body has in the same place. */
export function readEditedBody(edited: object, stored: Buffer, contentType: string | undefined): Buffer {
  return Buffer.from(JSON.stringify(withSecretsOf(parse(mappedJsonOf(contentType, stored.toString("utf8"))), edited)));
}

/** Undefined for a body that is not JSON: none of its fields was hidden. */
function parse(json: string | undefined): unknown {
  try {
    return json && JSON.parse(json);
  } catch {
    return undefined;
  }
}

function withSecretsOf(stored: unknown, edited: unknown): unknown {
  if (edited === HIDDEN) return typeof stored === "string" ? stored : edited;
  if (!isCollection(edited) || !isCollection(stored)) return edited;
  if (Array.isArray(edited)) return edited.map((item, index) => withSecretsOf(stored[index], item));
  return Object.fromEntries(Object.entries(edited).map(([key, value]) => [key, withSecretsOf(stored[key], value)]));
}

function isCollection(value: unknown): value is Readonly<Record<string | number, unknown>> {
  return typeof value === "object" && value !== null;
}
