import { routes } from "#generated/routes.ts";
import { GatewayError } from "#kit/errors.ts";
import { nearest } from "#kit/nearest.ts";
import { movePath } from "./documents.ts";

/** The paths that a listener serves below a prefix, or the reason that it serves none of them, as the rest of a sentence. */
export type Place = { prefix: string; paths: readonly string[]; closed: string | undefined };

/** The longest path that an error repeats. */
const PATH_LIMIT = 200;

/** The refusal of a path that leads nowhere: it gives the reason, or a path that was probably meant. Both are public. */
export function nothingAt(path: string, places: readonly Place[]): GatewayError {
  const words = `There is nothing at ${path.slice(0, PATH_LIMIT)}`;
  const closed = places.find((place) => place.closed !== undefined && leadsTo(path, place.prefix))?.closed;
  if (closed !== undefined) return new GatewayError("not-found", `${words}: ${closed}.`);
  const served = places.flatMap(({ paths, closed }) => (closed === undefined ? paths : []));
  const meant = path.length > PATH_LIMIT ? undefined : meantBy(path, served);
  return new GatewayError(
    "not-found",
    `${words}.${meant === undefined ? pathsHint(path, places) : ` Did you mean ${meant}?`}`,
  );
}

/** A sentence that lists the paths of a surface if they are few, or names the path that lists all. */
function pathsHint(path: string, places: readonly Place[]): string {
  const { paths = [] } = places.find(({ prefix }) => leadsTo(path, prefix)) ?? {};
  return paths.length > 1 && paths.length <= FEW ? ` There are ${paths.join(", ")}.` : " GET / lists what there is.";
}
const FEW = 5;

/** A path is a prefix or below it. */
export function leadsTo(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH);
}
const SLASH = 47;

/**
 * The served path that differs only by slashes, has the given path at its end, or one part more; or else the one whose parts are all the
 * same or misspelt.
 */
function meantBy(path: string, served: readonly string[]): string | undefined {
  const plain = path.replaceAll(/\/+/g, "/").replace(/\/$/, "");
  const parts = plain.split("/");
  const filled = served.map((one) => fillIn(one, parts));
  const isEnd = (one: string) => parts.length > 2 && one.endsWith(plain);
  const isLonger = (one: string) => parts.length > 2 && lacksOne(parts, one.split("/"));
  const near = filled.filter((one) => isMisspelt(parts, one.split("/")));
  return filled.find((one) => one === plain) ?? filled.find(isEnd) ?? filled.find(isLonger) ?? nearest(plain, near);
}

/** True if `whole` has one part more, and else the same parts. */
function lacksOne(parts: readonly string[], whole: readonly string[]): boolean {
  if (whole.length !== parts.length + 1) return false;
  const differs = parts.findIndex((part, n) => part !== whole[n]);
  return differs >= 0 && parts.slice(differs).every((part, n) => part === whole[differs + 1 + n]);
}

function isMisspelt(parts: readonly string[], others: readonly string[]): boolean {
  return (
    parts.length === others.length &&
    parts.every((part, n) => part === others[n] || nearest(part, [others[n] as string]) !== undefined)
  );
}

/** A path of the contract with the parts that vary as they were sent. */
function fillIn(path: string, given: readonly string[]): string {
  return path.includes("{")
    ? path
        .split("/")
        .map((part, n) => (part.startsWith("{") ? (given[n] ?? part) : part))
        .join("/")
    : path;
}

function pathsOf(is: (route: (typeof routes)[number]) => boolean): string[] {
  return [...new Set(routes.filter(is).map(({ path }) => path))];
}
function below(prefix: string) {
  return pathsOf(({ path }) => path === prefix || path.startsWith(`${prefix}/`));
}

function placeOf(surface: string, prefix: string, description: string, paths = [prefix]) {
  return {
    surface,
    prefix,
    paths,
    description,
    /** It answers a browser that has no token. */
    isLink: surface === "console" || surface === "docs" || surface === "always",
  };
}

/** The places of the surfaces, with their paths as the contract lists them. */
export function servedPlaces(webhookPath: string) {
  const hooks = below("/hooks").map((path) => movePath(path, webhookPath));
  return [
    placeOf("rest", "/api/v1", "REST, with a REST key: messages, skills, turns.", below("/api/v1")),
    placeOf("openai", "/v1", "For clients of OpenAI, with a REST key: agents as models.", below("/v1")),
    placeOf("mcp", "/mcp", "For clients of the Model Context Protocol, with a REST key: agents as tools."),
    placeOf("rpc", "/rpc", "JSON-RPC 2.0 by POST, with an RPC token.", ["/rpc", "/rpc/ws"]),
    placeOf("rpc", "/rpc/ws", "JSON-RPC 2.0 and live pushes on a WebSocket, with an RPC token.", []),
    placeOf("webhooks", webhookPath, "Webhooks, with the webhook token or a signature.", hooks),
    placeOf("console", "/console", "The console: see what happens, and make keys."),
    placeOf("docs", "/docs", "The documentation: guides, and the reference of every call."),
    placeOf("docs", "/openapi.json", "The contract of REST and webhooks."),
    placeOf("docs", "/openrpc.json", "The contract of JSON-RPC."),
    placeOf("metrics", "/metrics", "Figures for Prometheus, with an RPC token."),
    placeOf("always", "/healthz", "Whether the process lives."),
    placeOf("always", "/readyz", "Whether the gateway takes work."),
  ];
}
