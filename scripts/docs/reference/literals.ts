import { isObject, type Json } from "../../generate/json.ts";

const WIDTH = 76;

type Style = { key: (name: string) => string; word: (value: null | boolean) => string };

const typescript: Style = {
  key: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)),
  word: String,
};
const python: Style = {
  key: (name) => JSON.stringify(name),
  word: (value) => (value === null ? "None" : value ? "True" : "False"),
};

/** A value in a readable form: on one line if it fits, else with a line for each member. */
function print(value: Json, style: Style, indent: string, room: number): string {
  if (value === null || typeof value === "boolean") return style.word(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const members: [string, Json][] = isList
    ? value.map((one) => ["", one])
    : Object.entries(value).map(([name, one]) => [`${style.key(name)}: `, one]);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (members.length === 0) return open + close;
  const pad = isList || style === python ? "" : " ";
  const flat = `${open}${pad}${members.map(([name, one]) => name + print(one, style, "", Infinity)).join(", ")}${pad}${close}`;
  if (flat.length <= room) return flat;
  const inner = `${indent}${style === python ? "    " : "  "}`;
  const lines = members.map(([name, one]) => {
    return `${inner}${name}${print(one, style, inner, WIDTH - inner.length - name.length)},\n`;
  });
  return `${open}\n${lines.join("")}${indent}${close}`;
}

export function typescriptLiteral(value: Json, room = WIDTH): string {
  return print(value, typescript, "", room);
}
function pythonLiteral(value: Json, indent = "", room = WIDTH): string {
  return print(value, python, indent, room);
}

/** A call in TypeScript. */
export function typescriptCall(name: string, args: readonly Json[]): string {
  return `${name}(${args.map((arg) => typescriptLiteral(arg, isObject(arg) ? WIDTH - name.length : Infinity)).join(", ")})`;
}

/** A call in Python, with its named arguments after the positional ones. */
export function pythonCall(name: string, places: readonly Json[], named: readonly [string, Json][]): string {
  const printed = (indent: string, room: number): string[] => [
    ...places.map((value) => pythonLiteral(value, indent, room)),
    ...named.map(([key, value]) => `${key}=${pythonLiteral(value, indent, room - key.length)}`),
  ];
  const flat = `${name}(${printed("", Infinity).join(", ")})`;
  if (flat.length <= WIDTH) return flat;
  return `${name}(\n${printed("    ", WIDTH - 6)
    .map((line) => `    ${line},\n`)
    .join("")})`;
}
