import { type DocumentNode, parse, type ValueNode } from "@humanwhocodes/momoa";
import { ConfigError, type ConfigProblem, dotted, type Path, type Position, type Source, setKey } from "./problems.ts";

/** Reads JSON5, which includes JSON. */
export function parseJson(file: string, text: string): Source {
  if (text.trim() === "") return { file, value: {}, place: () => ({ line: 1, column: 1 }) };
  const { body } = parseDocument(file, text);
  const problems: ConfigProblem[] = [];
  const value = read(body, [], (path, at) => {
    problems.push({ file, ...at, key: dotted(path), message: "is written twice: keep one of them." });
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return { file, value, place: (path, on) => find(body, path, on) };
}

function parseDocument(file: string, text: string): DocumentNode {
  try {
    return parse(text, { mode: "json5", allowTrailingCommas: true });
  } catch (error) {
    // A RangeError has no position: the parser's stack is full.
    if (error instanceof RangeError)
      throw new ConfigError([
        {
          file,
          line: null,
          column: null,
          key: "",
          message: "the file is nested too deeply: close its brackets earlier.",
        },
      ]);
    const { line, column, message } = error as Error & Position;
    const lines = text.split(/\r\n|[\n\r\u2028\u2029]/);
    const [first = "", ...later] = lines.slice(line - 1);
    const rest = [first.slice(column - 1), ...later].join("\n");
    const found = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w$.+-]+|.)/u.exec(rest)?.[0] ?? "";
    // If the text ends too early, the parser points at the beginning of the open part or at the last word.
    const unfinished =
      message.startsWith("Unexpected end") || (!/[}\]]/.test(found) && rest.slice(found.length).trim() === "");
    const at = unfinished ? { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 } : { line, column };
    const what = unfinished
      ? "the text ends too early: close what is open"
      : `${shown(found, rest)}look for a missing comma, quote or bracket before it`;
    throw new ConfigError([{ file, ...at, key: "", message: `the file is not JSON5: ${what}.` }]);
  }
}

/** The message for an unexpected text. It quotes only a bracket or a key: other text may be a secret. */
function shown(found: string, rest: string): string {
  if (found.length === 1 || /^\s*:/.test(rest.slice(found.length))) return `\`${found}\` was not expected: `;
  return /^["']/.test(found)
    ? "this text was not expected: "
    : "this text has no quotes and was not expected: put it in quotes, or ";
}

function read(node: ValueNode, path: Path, twice: (path: Path, at: Position) => void): unknown {
  switch (node.type) {
    case "Object": {
      const object: Record<string, unknown> = {};
      for (const { name, value } of node.members) {
        const key = name.type === "String" ? name.value : name.name;
        const at = [...path, key];
        if (Object.hasOwn(object, key)) twice(at, start(name));
        setKey(object, key, read(value, at, twice));
      }
      return object;
    }
    case "Array":
      return node.elements.map(({ value }, index) => read(value, [...path, index], twice));
    case "Null":
      return null;
    case "NaN":
      return Number.NaN;
    case "Infinity":
      return node.sign === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    default:
      return node.value;
  }
}

function find(root: ValueNode, path: Path, on: "key" | "value"): Position {
  let node: ValueNode = root;
  let at = start(root);
  for (const [depth, step] of path.entries()) {
    if (typeof step === "number") {
      const element = node.type === "Array" ? node.elements[step] : undefined;
      if (!element) return at;
      node = element.value;
      at = start(node);
    } else {
      const members = node.type === "Object" ? node.members : [];
      const member = members.find(({ name }) => (name.type === "String" ? name.value : name.name) === step);
      if (!member) return at;
      node = member.value;
      at = start(on === "key" && depth === path.length - 1 ? member.name : node);
    }
  }
  return at;
}

function start(node: { loc: { start: Position } }): Position {
  return {
    line: node.loc.start.line,
    column: node.loc.start.column,
  };
}
