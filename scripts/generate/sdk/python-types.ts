import { SpecError } from "../spec-files.ts";
import type { Field, Shape, Type } from "./shapes.ts";

const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda
nonlocal not or pass raise return try while with yield`.split(/\s/),
);
const LINE = 120;

/** A name of the contract in Python's form. */
export function snake(name: string): string {
  const lower = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
  return KEYWORDS.has(lower) ? `${lower}_` : lower;
}
function isName(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name) && !KEYWORDS.has(name);
}

/** A type as an annotation: a record without a name has no class. `named` returns the name of a shape. */
export function printType(type: Type, named: (name: string) => string = (name) => name): string {
  const print = (of: Type): string => printType(of, named);
  switch (type.kind) {
    case "string":
      return "str";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "boolean":
      return "bool";
    case "null":
      return "None";
    case "unknown":
      return "Any";
    case "literal":
      return `Literal[${pythonLiteral(type.value)}]`;
    case "named":
      return named(type.name);
    case "list":
      return `List[${print(type.of)}]`;
    case "map":
      return `Dict[str, ${print(type.of)}]`;
    case "union":
      return printUnion(type.of, print);
    case "record":
      return "Dict[str, Any]";
  }
}

function printUnion(members: Type[], print: (type: Type) => string): string {
  const literals = members.flatMap((type) => (type.kind === "literal" ? [pythonLiteral(type.value)] : []));
  const others = members.filter(({ kind }) => kind !== "literal" && kind !== "null").map(print);
  const all = [...(literals.length > 0 ? [`Literal[${literals.join(", ")}]`] : []), ...others];
  const type = all.length === 1 ? (all[0] as string) : `Union[${all.join(", ")}]`;
  return members.some(({ kind }) => kind === "null") ? `Optional[${type}]` : type;
}

function pythonLiteral(value: string | number | boolean): string {
  return typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
}

/** The shapes, with a name for each record: a record inside another one has both names. */
export function namedShapes(shapes: Shape[]): Shape[] {
  const found: Shape[] = [];
  const taken = new Set(shapes.map(({ name }) => name));
  const named = (type: Type, name: string): Type => {
    if (type.kind === "list" || type.kind === "map") return { ...type, of: named(type.of, `${name}Item`) };
    if (type.kind === "union") return { ...type, of: type.of.map((member) => named(member, name)) };
    if (type.kind !== "record") return type;
    if (taken.has(name))
      throw new SpecError(`the shape ${name}`, "Python needs the name for a record inside of another");
    taken.add(name);
    found.push({ name, doc: "", type: withNamedFields(type, name) });
    return { kind: "named", name };
  };
  const withNamedFields = (type: Type & { kind: "record" }, name: string): Type => ({
    ...type,
    fields: type.fields.map((field) => ({ ...field, type: named(field.type, `${name}${capital(field.name)}`) })),
  });
  for (const { name, doc, type } of shapes)
    found.push({ name, doc, type: type.kind === "record" ? withNamedFields(type, name) : named(type, name) });
  return found;
}

export function capital(text: string): string {
  return text.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** A class or an alias under its name. */
export function printShape({ name, doc, type }: Shape): string {
  if (type.kind !== "record") {
    const text = printType(type, (other) => `"${other}"`);
    return `${name} = ${type.kind === "named" ? `Union[${text}]` : text}\n${docstring(doc)}`;
  }
  const required = type.fields.filter((field) => field.required);
  const optional = type.fields.filter((field) => !field.required);
  if (!type.fields.every((field) => isName(field.name))) return printOddShape(name, doc, required, optional);
  if (optional.length === 0) return printClass(name, "TypedDict", doc, required);
  if (required.length === 0) return printClass(name, "TypedDict, total=False", doc, optional);
  return `${printClass(`_${name}Required`, "TypedDict", "", required)}\n\n${printClass(name, `_${name}Required, total=False`, doc, optional)}`;
}

function printClass(name: string, base: string, doc: string, fields: Field[]): string {
  const body = fields.map((field) => `    ${field.name}: ${printType(field.type)}\n${docstring(field.doc, "    ")}`);
  const words = docstring(doc, "    ");
  return `class ${name}(${base}):\n${words}${words && body.length > 0 ? "\n" : ""}${body.join("") || (words ? "" : "    pass\n")}`;
}

/** The methods of a dict, which hide a field of the same name. */
const METHODS = new Set("clear copy fromkeys get items keys pop popitem setdefault update values".split(" "));

/** The class of an object of a reply, with its fields as attributes. An optional field may be None. */
export function printReplyShape({ name, doc, type }: Shape): string {
  const fields = type.kind === "record" ? type.fields : [];
  const words = docstring(doc, "    ");
  const body = fields
    .filter((field) => isName(snake(field.name)) && !METHODS.has(snake(field.name)))
    .map((field) => {
      const own = printType(field.type);
      const shown =
        field.required || own === "Any" || own.startsWith("Optional[") || own === "None" ? own : `Optional[${own}]`;
      return `    ${snake(field.name)}: ${shown}\n${docstring(field.doc, "    ")}`;
    });
  return `class ${name}(Reply):\n${words}${words && body.length > 0 ? "\n" : ""}${body.join("") || (words ? "" : "    pass\n")}`;
}

/** A field whose name is not valid in Python can only be written as a text. */
function printOddShape(name: string, doc: string, required: Field[], optional: Field[]): string {
  const fields = (list: Field[]): string =>
    `{${list.map((field) => `${JSON.stringify(field.name)}: ${JSON.stringify(printType(field.type))}`).join(", ")}}`;
  const words = docstring(doc, "    ");
  const base = `_${name}Required = TypedDict("_${name}Required", ${fields(required)})\n`;
  const more = `_${name}Optional = TypedDict("_${name}Optional", ${fields(optional)}, total=False)\n`;
  return `${base}${optional.length > 0 ? more : ""}\n\nclass ${name}(_${name}Required${optional.length > 0 ? `, _${name}Optional` : ""}):\n${words || "    pass\n"}`;
}

/** A docstring, or nothing without a text. */
export function docstring(words: string, indent = ""): string {
  const text = words.trim().replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  if (text === "") return "";
  const end = text.endsWith('"') ? " " : "";
  const lines = text.split("\n").flatMap((line) => wrap(line, LINE - indent.length));
  if (lines.length === 1) return `${indent}"""${lines[0]}${end}"""\n`;
  const [first = "", ...rest] = lines;
  return `${indent}"""${first}\n${rest.map((line) => `${indent}${line}`.trimEnd()).join("\n")}\n${indent}"""\n`;
}

function wrap(line: string, width: number): string[] {
  const lines: string[] = [];
  let now = "";
  for (const word of line.split(" ")) {
    if (now !== "" && now.length + word.length + 1 > width) {
      lines.push(now);
      now = word;
    } else now = now === "" ? word : `${now} ${word}`;
  }
  return [...lines, now];
}
