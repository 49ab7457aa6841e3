import { nearest } from "#kit/nearest.ts";

/** A place in the configuration: keys and list indexes from the root. */
export type Path = readonly (string | number)[];

/** An error at a place, without its position in a file. */
export type Fault = { path: Path; on: "key" | "value"; message: string };

/** Reports an error of a value or a key. */
export type Report = (path: Path, message: string, on?: Fault["on"]) => void;

/** The results of all checks: errors refuse the configuration, warnings are logged. */
export function createFindings() {
  const faults: Fault[] = [];
  const warnings: Fault[] = [];
  const reportTo =
    (list: Fault[]): Report =>
    (path, message, on = "value") =>
      void list.push({ path, on, message });
  return { faults, warnings, refuse: reportTo(faults), warn: reportTo(warnings) };
}
export type Findings = Pick<ReturnType<typeof createFindings>, "refuse" | "warn">;

/** An error in the configuration. `<key> <message>` is a sentence. */
export type ConfigProblem = {
  /** The name of the file; null if the error is not in a file. */
  file: string | null;
  line: number | null;
  column: number | null;
  key: string;
  message: string;
};

/** Refuses the configuration, with all problems that were found. */
export class ConfigError extends Error {
  override name = "ConfigError";
  readonly problems: readonly ConfigProblem[];
  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(showProblem).join("\n"));
    this.problems = problems;
  }
}

/** `gateway.json5:7:5: webhooks.tokn is not a key of webhooks; did you mean `token`?` */
export function showProblem({ file, line, column, key, message }: ConfigProblem): string {
  const place = file === null ? "" : line === null ? `${file}: ` : `${file}:${line}:${column}: `;
  return `${place}${key === "" ? message : `${key} ${message}`}`;
}

/** The dotted form of a path: `gateway.rpc.auth.tokens[0].name`, `match["body.ref"]` where a key has dots. */
export function dotted(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (!/^[\w$-]+$/.test(step)) text += `[${JSON.stringify(step)}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

/** The value at a path; undefined if there is none. */
export function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, step) =>
      typeof node === "object" && node !== null && Object.hasOwn(node, step)
        ? (node as Record<string | number, unknown>)[step]
        : undefined,
    root,
  );
}

export type Position = { line: number; column: number };

/** A configuration as written: its values and their positions. */
export type Source = {
  file: string | null;
  value: unknown;
  /** The position of a key or its value, or of the nearest existing parent. */
  place(path: Path, on: "key" | "value"): Position | undefined;
  /** The variables of values without a reference, by key. */
  variables?: Readonly<Record<string, string>>;
};

/** A configuration without a file. */
export function unwritten(value: unknown, variables: Source["variables"] = {}): Source {
  return { file: null, value, place: () => undefined, variables };
}

export function locate(source: Source, { path, on, message }: Fault): ConfigProblem {
  const at = source.place(path, on);
  const inWords = (text: string) =>
    Object.entries(source.variables ?? {}).reduce((words, [key, name]) => words.replaceAll(key, name), text);
  const key = inWords(dotted(path));
  return { file: source.file, line: at?.line ?? null, column: at?.column ?? null, key, message: inWords(message) };
}

/** Sets a key of a parsed object. `__proto__` becomes an ordinary key, which the schema then refuses. */
export function setKey(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true });
  else object[key] = value;
}

/** The end of a sentence about a name that is not configured in a section. */
export function notAmong(known: readonly string[], name: string, section: string): string {
  const none = `there is none yet: add it to \`${section}\`.`;
  return `that is not configured; ${known.length === 0 ? none : meantOrListed(known, name)}`;
}

/** The name that was probably meant, or all names. */
export function meantOrListed(known: readonly string[], name: string): string {
  const meant = nearest(name, known);
  return meant ? `did you mean \`${meant}\`?` : `there ${known.length === 1 ? "is" : "are"} ${listed(known)}.`;
}

export function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}
