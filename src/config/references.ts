import { type Fault, type Path, setKey } from "./problems.ts";

/** A value that a reference put into a text: the variable, the whole text, and the place of the value in it. */
export type Filled = { path: Path; name: string; value: string; text: string; at: number };

/**
 * Replaces `${NAME}` by environment variables in every text; `$${` stands for `${`. The error for a reference without a value
 * names the variable. A dollar sign before a template's `{body.…}` or `{headers.…}` stays.
 */
export function resolveReferences(
  value: unknown,
  env: NodeJS.ProcessEnv,
): { value: unknown; faults: Fault[]; filled: Filled[] } {
  const faults: Fault[] = [];
  const filled: Filled[] = [];
  return { value: resolve(value, []), faults, filled };

  function resolve(node: unknown, path: Path): unknown {
    if (typeof node === "string") return node.includes("${") ? fill(node, path) : node;
    if (Array.isArray(node)) return node.map((item, index) => resolve(item, [...path, index]));
    if (typeof node !== "object" || node === null) return node;
    const object: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(node)) setKey(object, key, resolve(item, [...path, key]));
    return object;
  }

  function fill(text: string, path: Path): string {
    const values: Omit<Filled, "path" | "text">[] = [];
    let grown = 0;
    const whole = text.replace(
      /\$\$\{|\$\{([^}]*)(\}?)/g,
      (reference, name: string | undefined, end: string, at: number) => {
        const found = valueIn(reference, name, end, path);
        if (name !== undefined && found !== reference) values.push({ name, value: found, at: at + grown });
        grown += found.length - reference.length;
        return found;
      },
    );
    for (const one of values) filled.push({ path, text: whole, ...one });
    return whole;
  }

  function valueIn(whole: string, name: string | undefined, end: string, path: Path): string {
    if (name === undefined) return "${";
    if (/^(body|headers)\./.test(name)) return whole;
    const fault = (message: string): string => {
      faults.push({ path, on: "value", message });
      return whole;
    };
    if (end === "" || !/^[A-Za-z_]\w*$/.test(name)) {
      return fault(`holds "\${" without the name of a variable and "}": write \${NAME}, or $\${ for the text itself.`);
    }
    const found = env[name];
    if (found === undefined) return fault(`refers to the variable ${name}, which is not set: set it.`);
    return found.trim() === "" ? fault(`refers to the variable ${name}, which is empty: give it a value.`) : found;
  }
}

/** The notations of variables in shells, Windows, PowerShell, Kubernetes, templates, JavaScript and .env tools. The configuration does not expand them. */
const FOREIGN = [
  /^\$(?:env:)?(\w+)$/,
  /^\$\((\w+)\)$/,
  /^%(\w+)%$/,
  /^\{\{?\s*(?:env\.|secrets\.|\.)?(\w+)\s*\}?\}$/,
  /^(?:process\.)?env[.:](\w+)$/,
  /^process\.env\[["'](\w+)["']\]$/,
];

/** The usual form of a variable's name. Other texts may be secrets, and are not repeated. */
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;

/** The correct form of a reference in another notation, alone or after a word such as `Bearer`. */
export function meantReference(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const bare = text.trim().replace(/^[A-Za-z]+ /, "");
  const name = FOREIGN.map((form) => form.exec(bare)?.[1]).find((found) => found !== undefined && !/^\d/.test(found));
  return name && (VARIABLE.test(name) ? `\${${name}}` : `\${NAME}`);
}
