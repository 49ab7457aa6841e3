import { isObject, key, literal, object } from "./json.ts";
import { header } from "./output.ts";
import { SpecError, type SpecFiles } from "./spec-files.ts";

export type ErrorRow = {
  code: number | null;
  status: number;
  title: string;
  meaning: string;
  /** The remedy for a person. */
  remedy: string;
  retry: boolean;
};
export type ErrorRows = Record<string, ErrorRow>;

const file = "errors.yaml";
const columns = ["code", "status", "title", "meaning", "remedy", "retry"];

export function readErrors(specs: SpecFiles): ErrorRows {
  const rows: ErrorRows = {};
  for (const [name, row] of Object.entries(object(object(specs.file(file)).errors))) {
    const place = { file, pointer: `/errors/${name}` };
    const refuse = (message: string): never => {
      throw new SpecError(place, message);
    };
    if (!isObject(row)) return refuse("must be an object");
    const unknown = Object.keys(row).find((column) => !columns.includes(column));
    if (unknown !== undefined) refuse(`the generator does not know "${unknown}"`);
    const { code = null, status, title, meaning, remedy = "", retry = false } = row;
    if (!/^[a-z]+(-[a-z]+)*$/.test(name)) refuse("a name is words in small letters with hyphens");
    if (code !== null && typeof code !== "number") return refuse("code must be a number or null");
    if (typeof status !== "number" || status < 400 || status > 599) return refuse("status must be from 400 to 599");
    if (typeof title !== "string" || typeof meaning !== "string" || typeof remedy !== "string")
      return refuse("title, meaning and remedy must be text");
    if (typeof retry !== "boolean") return refuse("retry must be true or false");
    rows[name] = { code, status, title, meaning, remedy, retry };
  }
  return rows;
}

export function printErrors(rows: ErrorRows): string {
  return `${header("errors.yaml")}
/** Every error of the gateway. The code is for JSON-RPC; null if the error cannot occur there. */
export const errors = {
${Object.entries(rows)
  .map(
    ([name, { code, status, title, meaning, retry }]) => `  ${key(name)}: {
    code: ${code},
    status: ${status},
    title: ${literal(title)},
    meaning: ${literal(meaning)},
    retry: ${retry},
  },`,
  )
  .join("\n")}
} as const;

export type ErrorName = keyof typeof errors;
`;
}
