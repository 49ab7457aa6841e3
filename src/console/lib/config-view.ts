import type { ConfigValue } from "#generated/clients/typescript/src/rest-types.ts";
import type { Limits } from "./key-limits.ts";

/** The section that a value is listed under: `agents.main` for `agents.main.backend`, `store` for `store.type`. */
export function sectionOf(path: string): string {
  const parts = path.split(".");
  return parts.slice(0, Math.min(2, Math.max(1, parts.length - 1))).join(".");
}

/** A value on one line. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Where a value was set, in words. */
export function originText({ origin, line, column, variable }: ConfigValue): string {
  if (origin === "file") return line ? `file, line ${line}${column ? `:${column}` : ""}` : "file";
  if (origin === "environment") return variable ? `environment, ${variable}` : "environment";
  if (origin === "flag") return variable ? `flag ${variable}` : "flag";
  return origin === "try-out" ? "try-out" : "default";
}

type ConfigSection = { name: string; values: ConfigValue[] };

/** The values by section, in the given order. A search matches the path, the value or the origin; `origin` selects one kind. */
export function sectionsOf(values: readonly ConfigValue[], search = "", origin = ""): ConfigSection[] {
  const wanted = search.trim().toLowerCase();
  const sections = new Map<string, ConfigSection>();
  for (const one of values) {
    if (origin !== "" && one.origin !== origin) continue;
    const text = `${one.path}\n${valueText(one.value)}\n${originText(one)}`.toLowerCase();
    if (!text.includes(wanted)) continue;
    const name = sectionOf(one.path);
    const section = sections.get(name) ?? { name, values: [] };
    section.values.push(one);
    sections.set(name, section);
  }
  return [...sections.values()];
}

export type RpcToken = Limits & { index: number; name: string; permissions: readonly string[] };

const TOKEN_PART =
  /^gateway\.rpc\.auth\.tokens\.(\d+)\.(?:rateLimit\.)?(name|permissions|agents|maxRequests|windowMs|budget\.\w+)(?:\.\d+)?$/;

/** The RPC tokens of the configuration, with their permissions and limits, and without their secrets. */
export function tokensOf(values: readonly ConfigValue[]): RpcToken[] {
  const tokens = new Map<number, RpcToken>();
  for (const { path, value } of values) {
    const [, number, part] = TOKEN_PART.exec(path) ?? [];
    if (number === undefined) continue;
    const index = Number(number);
    const unknown = {
      index,
      name: `token ${index + 1}`,
      permissions: [],
      agents: null,
      rate_limit: null,
      budget: null,
    };
    tokens.set(index, withPart(tokens.get(index) ?? unknown, part, value));
  }
  return [...tokens.values()].sort((one, other) => one.index - other.index);
}

function withPart(token: RpcToken, part: string | undefined, value: unknown): RpcToken {
  const texts = Array.isArray(value) ? value.map(valueText) : [valueText(value)];
  const rate = token.rate_limit ?? { limit: 0, window_ms: 0 };
  switch (part) {
    case "name":
      return { ...token, name: valueText(value) };
    case "permissions":
      return { ...token, permissions: [...token.permissions, ...texts] };
    case "agents":
      return { ...token, agents: [...(token.agents ?? []), ...texts] };
    case "maxRequests":
      return { ...token, rate_limit: { ...rate, limit: Number(value) } };
    case "windowMs":
      return { ...token, rate_limit: { ...rate, window_ms: Number(value) } };
    default:
      return { ...token, budget: { per: "day", ...token.budget, ...budgetPart(part, value) } };
  }
}

function budgetPart(part: string | undefined, value: unknown): Partial<NonNullable<Limits["budget"]>> {
  switch (part) {
    case "budget.per":
      return { per: valueText(value) as NonNullable<Limits["budget"]>["per"] };
    case "budget.tokens":
      return { tokens: Number(value) };
    case "budget.cost":
      return { cost: Number(value) };
    default:
      return { time_zone: valueText(value) };
  }
}
