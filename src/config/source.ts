import type { ConfigProblem, Fault, Path } from "./problems.ts";
import { dotted } from "./problems.ts";

export type Position = { line: number; column: number };

/** A configuration as it was written: what it says, and where it says it. */
export type Source = {
  file: string | null;
  value: unknown;
  /** Where a key or its value stands; for one that is not there, its nearest parent. */
  place(path: Path, on: "key" | "value"): Position | undefined;
  /** The name of a value for the person who chose it, where that is not its key. */
  names?: Readonly<Record<string, string>>;
  /** The variables that values were taken from, by their paths, where no text refers to them. */
  from?: Readonly<Record<string, string>>;
};

/** A configuration that no file holds. */
export const unwritten = (value: unknown, names: Source["names"] = {}, from: Source["from"] = {}): Source => {
  return { file: null, value, place: () => undefined, names, from };
};

export function locate(source: Source, { path, on, message }: Fault): ConfigProblem {
  const at = source.place(path, on);
  const inWords = (text: string) =>
    Object.entries(source.names ?? {}).reduce((words, [key, name]) => words.replaceAll(key, name), text);
  const key = inWords(dotted(path));
  return { file: source.file, line: at?.line ?? null, column: at?.column ?? null, key, message: inWords(message) };
}

/** A key of an object that was read. `__proto__` becomes a key like any other, which the schema then refuses. */
export function setKey(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true });
  else object[key] = value;
}
