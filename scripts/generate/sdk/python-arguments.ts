import type { Call } from "./description.ts";
import { printType, snake } from "./python-types.ts";
import type { Field, Shape, Type } from "./shapes.ts";

/** An argument of a call's method in Python. */
export type Argument = {
  name: string;
  contract: string;
  type: string;
  isRequired: boolean;
  isNullable: boolean;
  place: Place;
};
type Place = "path" | "body" | "field" | "key" | "after";

/** The fields of a body that the call sets automatically. */
const SET_BY_CALL = ["stream", "wait"];

/** The arguments of a call: the path's values and a body that is not a record are positional, all others named. */
export function argumentsOf(call: Call, shapes: Shape[]): Argument[] {
  const { path, params, body, kind, idempotent, token } = call;
  const found: Argument[] = path.map(({ name, type }) => ({
    name: snake(name),
    contract: name,
    type: printType(type),
    isRequired: true,
    isNullable: false,
    place: "path" as const,
  }));
  const fields = body ? fieldsOf(body.shape, shapes) : params;
  if (fields === undefined && body)
    found.push({
      ...argumentOf({ name: "body", doc: "", required: true, type: named(body.shape) }, shapes),
      place: "body",
    });
  const given = (fields ?? []).filter(({ name }) => !body || kind === "plain" || !SET_BY_CALL.includes(name));
  found.push(
    ...given.map((field) => argumentOf(field, shapes)).sort((a, b) => Number(b.isRequired) - Number(a.isRequired)),
  );
  if (kind === "stream" && !body) found.push({ ...OPTIONAL_TEXT, name: "after", contract: "after", place: "after" });
  if (idempotent && token !== "rpc")
    found.push({ ...OPTIONAL_TEXT, name: "idempotency_key", contract: "idempotency_key", place: "key" });
  return found;
}

function named(name: string): Type {
  return { kind: "named", name };
}
const OPTIONAL_TEXT = { type: "str", isRequired: false, isNullable: false };

function argumentOf({ name, required, type }: Field, shapes: Shape[]): Argument {
  return {
    name: snake(name),
    contract: name,
    type: type.kind === "map" ? `Mapping[str, ${printType(type.of)}]` : printType(type),
    isRequired: required,
    isNullable: isNullable(type, shapes),
    place: "field",
  };
}

function isNullable(type: Type, shapes: Shape[]): boolean {
  return (
    type.kind === "null" ||
    (type.kind === "union" && type.of.some((member) => isNullable(member, shapes))) ||
    (type.kind === "named" && shapes.some(({ name, type: of }) => name === type.name && isNullable(of, shapes)))
  );
}

/** The fields of a shape, if it is a record. */
export function fieldsOf(shape: string, shapes: Shape[]): Field[] | undefined {
  const type = shapes.find(({ name }) => name === shape)?.type;
  return type?.kind === "record" ? type.fields : undefined;
}

export function printArgument({ name, type, isRequired, isNullable }: Argument): string {
  if (isRequired) return `${name}: ${type}`;
  return isNullable ? `${name}: Union[${type}, Omit] = OMIT` : `${name}: Optional[${type}] = None`;
}
