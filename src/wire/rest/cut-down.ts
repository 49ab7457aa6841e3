import { MOST_TOLD, type NamedSchema, type Schema } from "./contract-faults.ts";

/**
 * Takes out of a body what makes it no worse: to find each of ten thousand faults in it would stand in everybody's way, and a hundred are told.
 * What goes is beyond what the contract takes, and enough of that stays for the body to be refused; one that keeps to the contract stays
 * as it is.
 */
export const cutDown = (body: unknown, schema: Schema | undefined, named: NamedSchema): unknown => {
  const of = named(schema);
  if (of === undefined) return body;
  if (typeof body === "string") return cutText(body, of);
  if (Array.isArray(body)) cutList(body, of, named);
  else if (typeof body === "object" && body !== null) cutFields(body as Record<string, unknown>, of, named);
  return body;
};

/** A character is two units at most. */
const cutText = (text: string, { maxLength = Infinity }: Schema): string =>
  text.length > maxLength * 2 + 2 ? text.slice(0, maxLength * 2 + 2) : text;

const cutList = (list: unknown[], { maxItems = Infinity, items }: Schema, named: NamedSchema): void => {
  const most = Math.max(maxItems + 1, MOST_TOLD);
  if (list.length > most) list.length = most;
  if (items) for (const [n, one] of list.entries()) list[n] = cutDown(one, items, named);
};

const cutFields = (
  fields: Record<string, unknown>,
  { properties = {}, additionalProperties }: Schema,
  named: NamedSchema,
): void => {
  for (const [name, schema] of Object.entries(properties))
    if (Object.hasOwn(fields, name)) fields[name] = cutDown(fields[name], schema, named);
  if (additionalProperties !== false) return;
  const unknown = Object.keys(fields).filter((name) => !Object.hasOwn(properties, name));
  for (const name of unknown.slice(MOST_TOLD)) delete fields[name];
};
