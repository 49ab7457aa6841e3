import { nearest } from "#kit/nearest.ts";

/** A place in the configuration: keys and list indexes from the root. */
export type Path = readonly (string | number)[];

/** Something wrong at a place, before it is known where in which file that is. */
export type Fault = { path: Path; on: "key" | "value"; message: string };

/** Reports a fault of a value, or of a key. */
export type Report = (path: Path, message: string, on?: Fault["on"]) => void;

/** The findings of all checks: faults refuse the configuration, warnings are logged. */
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

/** One fault of the configuration, as people read it: `<key> <message>` is a sentence. */
export type ConfigProblem = {
  /** The file as it was named; null where no file is at fault. */
  file: string | null;
  line: number | null;
  column: number | null;
  key: string;
  message: string;
};

/** The configuration is refused. Every problem that was found is told, not only the first. */
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

/** The value at a path; undefined where there is none. */
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

/** A configuration as it was written: its values, and their places. */
export type Source = {
  file: string | null;
  value: unknown;
  /** Where a key or its value stands; for one that is not there, its nearest parent. */
  place(path: Path, on: "key" | "value"): Position | undefined;
  /** The variables that values were taken from, by their keys, where no text refers to them. */
  variables?: Readonly<Record<string, string>>;
};

/** A configuration that no file holds. */
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

/** A key of an object that was read. `__proto__` becomes a key like any other, which the schema then refuses. */
export function setKey(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true });
  else object[key] = value;
}

/** The rest of a sentence about a name that is not among those that are configured in a section. */
export function notAmong(known: readonly string[], name: string, section: string): string {
  const none = `there is none yet: add it to \`${section}\`.`;
  return `that is not configured; ${known.length === 0 ? none : meantOrListed(known, name)}`;
}

/** The name that was probably meant, or those that there are. */
export function meantOrListed(known: readonly string[], name: string): string {
  const meant = nearest(name, known);
  return meant ? `did you mean \`${meant}\`?` : `there ${known.length === 1 ? "is" : "are"} ${listed(known)}.`;
}

export function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}
