import { type Route, routes } from "#generated/routes.ts";
import { GatewayError } from "#kit/errors.ts";

export type { Route };

type Surface = Route["surface"];
export type Match = { route: Route; params: Record<string, string> };

type Pattern = { parts: string[]; byMethod: Map<string, Route> };

/** Finds the operation of a method and a path among the operations of some surfaces, as the contract lists them. */
export function createMatcher(...surfaces: readonly Surface[]) {
  const patterns = new Map<string, Pattern>();
  for (const route of routes as readonly Route[]) {
    if (!surfaces.includes(route.surface)) continue;
    const pattern = patterns.get(route.path) ?? { parts: route.path.split("/"), byMethod: new Map() };
    pattern.byMethod.set(route.method, route);
    patterns.set(route.path, pattern);
  }

  /** Undefined where nothing is at the path; throws `method-not-allowed` with the methods that it takes. */
  return (method: string, path: string): Match | undefined => {
    const given = path.split("/");
    const pattern = patterns.get(path) ?? [...patterns.values()].find(({ parts }) => fits(parts, given));
    if (!pattern) return undefined;
    const route = pattern.byMethod.get(method);
    if (!route) {
      const allow = [...pattern.byMethod.keys()].join(", ");
      throw new GatewayError("method-not-allowed", `This path takes ${allow}.`, { allow });
    }
    return { route, params: paramsOf(pattern.parts, given) };
  };
}

const matchWithKey = createMatcher("rest", "openai");

/**
 * The place in the contract that an unauthenticated caller requested. Its own path could contain a token, so only the beginning of an unknown one is
 * used.
 */
export function placeOfStranger(method = "", path = ""): { operation: string; path: string } {
  try {
    const found = matchWithKey(method, path);
    if (found) return { operation: found.route.operation, path: found.route.path };
  } catch {}
  if (path === "/mcp") return { operation: "mcp", path };
  return { operation: "unknown", path: /^\/v1(\/|$)/.test(path) ? "/v1/*" : "/api/v1/*" };
}

function isParam(part: string): boolean {
  return part.startsWith("{");
}

function fits(parts: readonly string[], given: readonly string[]): boolean {
  return (
    given.length === parts.length && parts.every((part, n) => (isParam(part) ? given[n] !== "" : part === given[n]))
  );
}

function paramsOf(parts: readonly string[], given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    parts.flatMap((part, n) => (isParam(part) ? [[part.slice(1, -1), decode(given[n] as string, part)]] : [])),
  );
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    const errors = [{ pointer: `path:${part.slice(1, -1)}`, message: "is not percent-encoded UTF-8" }];
    throw new GatewayError("invalid-request", "The path is malformed.", { errors });
  }
}
