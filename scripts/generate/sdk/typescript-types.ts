import { key, literal } from "../json.ts";
import { comment } from "../output.ts";
import type { Field, Shape, Type } from "./shapes.ts";

/** A type in TypeScript. `indent` is that of its first line. */
export function printType(type: Type, indent = ""): string {
  switch (type.kind) {
    case "integer":
      return "number";
    case "literal":
      return literal(type.value);
    case "named":
      return type.name;
    case "list":
      return type.of.kind === "union" ? `(${printType(type.of, indent)})[]` : `${printType(type.of, indent)}[]`;
    case "map":
      return `Record<string, ${printType(type.of, indent)}>`;
    case "union":
      return type.of.map((member) => printType(member, indent)).join(" | ");
    case "record":
      return `{\n${printFields(type.fields, `${indent}  `)}${type.open ? `${indent}  [name: string]: unknown;\n` : ""}${indent}}`;
    default:
      return type.kind;
  }
}

export function printFields(fields: Field[], indent: string): string {
  return fields
    .map(
      ({ name, doc, required, type }) =>
        `${comment(doc, indent)}${indent}${key(name)}${required ? "" : "?"}: ${printType(type, indent)};\n`,
    )
    .join("");
}

/** An interface or a type with its name. */
export function printShape({ name, doc, type }: Shape): string {
  return type.kind === "record"
    ? `${comment(doc)}export interface ${name} ${printType(type)}\n`
    : `${comment(doc)}export type ${name} = ${printType(type)};\n`;
}
