import { isUtf8 } from "node:buffer";
import { hideSecretFields } from "#kit/secret-fields.ts";
import { HIDDEN } from "#kit/secret-headers.ts";

type ShownBody = { body: string; encoding: "utf-8" | "base64" } | { body: null; encoding: null };

/** A recorded body as replies show it: fields with the name of a secret are hidden. The stored body, and a replay, have them. */
export function showBody(body: string | undefined): ShownBody {
  if (body === undefined) return { body: null, encoding: null };
  const bytes = Buffer.from(body, "latin1");
  if (!isUtf8(bytes)) return { body: bytes.toString("base64"), encoding: "base64" };
  return { body: hideSecretFields(bytes.toString("utf8"), { onlyTexts: true }), encoding: "utf-8" };
}

/** The bytes of an edited body. `[hidden]` is replaced with the value that the stored body has in the same place. */
export function readEditedBody(edited: object, stored: Buffer): Buffer {
  return Buffer.from(JSON.stringify(withSecretsOf(parse(stored), edited)));
}

/** Undefined for a body that is not JSON: none of its fields was hidden. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
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
