import { isSecretHeader } from "./secret-headers.ts";

/** The parts of a request that mappings read: its headers, names in small letters, and its parsed body. */
export type MappedRequest = {
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: unknown;
};

/** One place in a request. */
export type Lookup = { in: "headers"; name: string } | { in: "body"; steps: readonly string[] };

/** The flaw of a path or a template, as the end of a sentence that begins with its place. */
export type Flaw = { flaw: string };

/** A body with deeper nesting is refused before it is read. */
const DEEPEST = 64;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const INDEX = /^(?:0|[1-9]\d*)$/;

/**
 * The place of `headers.<name>` or `body.<dotted path>`. Everything after `headers.` is the name, including dots; in a body each dot starts another
 * step, so a key with a dot cannot be reached.
 */
export function parseLookup(text: string): Lookup | Flaw {
  const dot = text.indexOf(".");
  const root = text.slice(0, dot);
  const rest = text.slice(dot + 1);
  if (dot > 0 && root === "headers") return headerLookup(rest);
  if (dot > 0 && root === "body") return bodyLookup(rest);
  return { flaw: "is neither headers.<name> nor body.<dotted path>." };
}

function headerLookup(written: string): Lookup | Flaw {
  const name = written.toLowerCase();
  if (!HEADER_NAME.test(name)) return { flaw: "names a header that no request can have." };
  if (isSecretHeader(name)) return { flaw: "names a header that may hold a secret: mappings never read those." };
  return { in: "headers", name };
}

function bodyLookup(written: string): Lookup | Flaw {
  const steps = written.split(".");
  if (steps.includes("")) return { flaw: "has an empty step: write a key or an index between two dots." };
  if (steps.some((step) => step.trim() !== step)) return { flaw: "has a step that begins or ends with a space." };
  if (steps.includes("__proto__")) return { flaw: "can never match: `__proto__` is never read." };
  if (steps.length > DEEPEST) return { flaw: `has more than ${DEEPEST} steps, the maximum depth of a body.` };
  return { in: "body", steps };
}

/** The value at that place; undefined for none. Only values that the sender sent: own keys of objects, and indexes of lists. */
export function lookUp(lookup: Lookup, { headers, body }: MappedRequest): unknown {
  if (lookup.in === "headers") {
    const value = Object.hasOwn(headers, lookup.name) ? headers[lookup.name] : undefined;
    return Array.isArray(value) ? value.join(", ") : value;
  }
  let node = body;
  for (const step of lookup.steps) {
    if (typeof node !== "object" || node === null) return undefined;
    if (Array.isArray(node) && !INDEX.test(step)) return undefined;
    if (!Object.hasOwn(node, step)) return undefined;
    node = (node as Record<string, unknown>)[step];
  }
  return node;
}

/**
 * A value as text: a text is itself, all else is JSON of what was parsed, so that 1e2 is `100`. Null, and a number that no JSON holds
 * (1e400), have no text.
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && !Number.isFinite(value)) return undefined;
  return JSON.stringify(value);
}

const SHOWN = 200;
const SHOWN_KEYS = 10;

/** A value in few words, whatever its size: a text's beginning, an object's keys, a list's length; null for nothing. */
export function excerptOf(value: unknown): string | null {
  if (Array.isArray(value)) return `[${value.length} ${value.length === 1 ? "item" : "items"}]`;
  if (typeof value === "object" && value !== null) {
    const keys = Object.keys(value);
    const shown = keys.slice(0, SHOWN_KEYS);
    return cut(`{${[...shown, ...(keys.length > shown.length ? ["…"] : [])].join(", ")}}`);
  }
  const text = textOf(value);
  return text === undefined ? null : cut(text);
}

// Never half of a pair of surrogates: the text is written as JSON and as UTF-8.
function cut(text: string): string {
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
