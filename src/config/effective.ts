import type { ConfigValue } from "#generated/rest-types.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import { type CheckedConfig, surfacesOn } from "./config.ts";
import { isSecretArgument } from "./hidden-values.ts";
import { dotted, type Path, type Source, valueAt } from "./problems.ts";
import { resolveReferences } from "./references.ts";
import { isSecretName, secretsOf } from "./secrets.ts";

/** A value of the configuration in force, without secrets and their hashes. */
export type EffectiveValue = Omit<ConfigValue, "value"> & { value: unknown };

/** The origin of an address that is not in the file. */
export type Override = { value: string | number; origin: "flag" | "environment"; variable: string | null };
type Overrides = { host: Override | undefined; port: Override | undefined };

/** All leaves of a checked configuration, with their origins. They are collected while it is read, so that its secrets need not stay in memory. */
export function effectiveValues(
  checked: CheckedConfig,
  source: Source,
  overrides: Overrides,
  hidden: readonly string[],
): EffectiveValue[] {
  const found = secretsOf(checked);
  const secrets = new Set(found.map(({ path }) => pathText(path)));
  const texts = new Set<unknown>(found.map(({ value }) => value));
  const variables = new Set(found.flatMap(({ path }) => variablesOf(valueAt(source.value, path))));
  // A secret may also be at a place whose key does not mark a secret.
  const isRepeated = (value: unknown, written: unknown) =>
    texts.has(value) ||
    (typeof value === "string" && hidden.some((one) => value.includes(one))) ||
    variablesOf(written).some((name) => variables.has(name));
  const { tree, listener } = withDerived(checked);
  const overridden = new Map<string, Override>();
  for (const key of ["host", "port"] as const) {
    const override = overrides[key];
    if (override) overridden.set(pathText([...listener, key]), override);
  }
  return leavesOf(tree, []).map(([path, value]): EffectiveValue => {
    const name = pathText(path);
    const override = overridden.get(name);
    if (override) return { path: name, ...override, line: null, column: null };
    const written = valueAt(source.value, path);
    const isHidden = secrets.has(name) || isRepeated(value, written) || isSecret(path, value, written, checked);
    return { path: name, value: isHidden ? HIDDEN : value, ...originOf(source, path, written) };
  });
}

/**
 * The values in force after a reload: the new ones, except for keys that need a restart. After the reload of an agent, only its values
 * are new.
 */
export function valuesAfter(
  running: readonly EffectiveValue[],
  read: readonly EffectiveValue[],
  needsRestart: readonly string[],
  agent?: { name: string; all: readonly string[] },
): EffectiveValue[] {
  if (agent !== undefined) {
    const { name, all } = agent;
    const others = all.filter((other) => other.startsWith(`${name}.`));
    const isOf = (path: string, one: string) => isWithin(path, `agents.${one}`);
    return replaced(read, running, (path) => isOf(path, name) && !others.some((other) => isOf(path, other)));
  }
  // An address can be written in two ways; all keys of the current address stay.
  const fixed = needsRestart.flatMap((key) => (ADDRESS.some((part) => isWithin(key, part)) ? ADDRESS : [key]));
  return replaced(running, read, (path) => fixed.some((key) => isWithin(path, key)));
}

const ADDRESS = ["gateway.host", "gateway.port", "gateway.listeners"];

/** The second list, with the values of the first for the paths that `takes` selects. */
function replaced(
  first: readonly EffectiveValue[],
  second: readonly EffectiveValue[],
  takes: (path: string) => boolean,
): EffectiveValue[] {
  const at = second.findIndex(({ path }) => takes(path));
  const rest = second.filter(({ path }) => !takes(path));
  const index = at < 0 ? rest.length : at;
  return [...rest.slice(0, index), ...first.filter(({ path }) => takes(path)), ...rest.slice(index)];
}

function isWithin(path: string, key: string): boolean {
  return path === key || path.startsWith(`${key}.`);
}

/** The configuration with defaults that depend on other keys, and the path of the address that options can replace. */
function withDerived(checked: CheckedConfig): { tree: object; listener: Path } {
  const { gateway, webhooks, agents } = checked;
  const on = surfacesOn(checked);
  const { host, port, ...rest } = gateway;
  const address = gateway.listeners === undefined ? { host, port } : {};
  const defaultAgent = gateway.defaultAgent ?? Object.keys(agents)[0];
  const mappings = withAgents(webhooks.mappings, defaultAgent);
  const tree = {
    ...checked,
    gateway: {
      ...address,
      ...rest,
      defaultAgent,
      rest: { ...gateway.rest, enabled: on.rest },
      rpc: { ...gateway.rpc, enabled: on.rpc },
      console: { ...gateway.console, enabled: on.console },
    },
    schedules: Object.fromEntries(withAgents(checked.schedules, defaultAgent)),
    webhooks: { ...webhooks, enabled: on.webhooks, mappings: Object.fromEntries(mappings) },
  };
  return { tree, listener: gateway.listeners === undefined ? ["gateway"] : ["gateway", "listeners", 0] };
}

function withAgents<T extends { agent?: string }>(of: Readonly<Record<string, T>>, agent: string | undefined) {
  return Object.entries(of).map(([name, one]) => [name, { ...one, agent: one.agent ?? agent }] as const);
}

function leavesOf(value: unknown, path: Path): [Path, unknown][] {
  if (value === undefined) return [];
  if (typeof value !== "object" || value === null) return [[path, value]];
  const inside: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  if (inside.length === 0) return [[path, value]];
  return inside.flatMap(([step, item]) => leavesOf(item, [...path, step]));
}

function originOf(source: Source, path: Path, written: unknown): Omit<EffectiveValue, "path" | "value"> {
  const nowhere = { line: null, column: null, variable: null };
  if (written === undefined) return { origin: "default", ...nowhere };
  if (source.file === null) {
    const variable = source.variables?.[dotted(path)] ?? null;
    return { origin: variable === null ? "try-out" : "environment", ...nowhere, variable };
  }
  const at = source.place(path, "value");
  const variable = variablesOf(written)[0] ?? null;
  const origin = variable === null ? "file" : "environment";
  return { origin, line: at?.line ?? null, column: at?.column ?? null, variable };
}

/** The variables that a text refers to. */
function variablesOf(written: unknown): string[] {
  if (typeof written !== "string" || !written.includes("${")) return [];
  const names: string[] = [];
  resolveReferences(written, new Proxy({}, { get: (_, name) => names.push(String(name)) && "x" }));
  return names;
}

/** True if a text is or may contain a secret: by its key, by its variable, or as an address with credentials. */
function isSecret(path: Path, value: unknown, written: unknown, checked: CheckedConfig): boolean {
  if (typeof value !== "string") return false;
  const key = String(path.findLast((step) => typeof step === "string"));
  const parents = path.slice(0, -1);
  // Agents, providers and servers of tools send them; a mapping only compares headers.
  if (path[0] !== "webhooks" && parents.some((step) => step === "headers" || step === "env")) return true;
  if (isSecretName(key)) return true;
  if (
    parents.some((step) => step === "options" || step === "settings") &&
    parents.some((step) => isSecretName(String(step)))
  )
    return true;
  const variables = variablesOf(written);
  if (variables.some(isSecretName)) return true;
  if (/url$/i.test(key) && (variables.length > 0 || /[@?#]/.test(value))) return true;
  if (key === "run" && (variables.length > 0 || isSecretArgument(path, value, checked))) return true;
  return /:\/\/[^/\s]*@/.test(value) || /\b(bearer|basic)\s+\S{16}|\bgw_[\w-]{20}/i.test(value);
}

function pathText(path: Path): string {
  return path.join(".");
}
