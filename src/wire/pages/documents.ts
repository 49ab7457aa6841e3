/** The specs as a running gateway serves them: with the address that a caller uses, and its own webhook path. */
export type Documents = { openapi: (url: string) => Buffer; openrpc: (url: string) => Buffer };

const DEFAULT_PATH = "/hooks";
/** Stands for the address in a text that is made once. */
const ADDRESS = "{{address}}";

export function serveDocuments(documents: { openapi: object; openrpc: object }, webhookPath: string): Documents {
  const openapi = once(() => withAddress(moved(documents.openapi, webhookPath), { description: "This gateway." }));
  const openrpc = once(() => withAddress(documents.openrpc, { name: "gateway" }));
  return {
    openapi: latest((url) => openapi().join(inText(url))),
    openrpc: latest((url) => openrpc().join(inText(`${url}/rpc`))),
  };
}

/** The document as text, in the parts that stand around its address. */
function withAddress(document: object, server: object): string[] {
  return JSON.stringify({ ...document, servers: [{ url: ADDRESS, ...server }] }).split(ADDRESS);
}

function inText(url: string): string {
  return JSON.stringify(url).slice(1, -1);
}

function moved(document: object, webhookPath: string): object {
  const { paths } = document as { paths: Record<string, unknown> };
  const entries = Object.entries(paths).map(([path, item]) => [movePath(path, webhookPath), item] as const);
  return { ...document, paths: Object.fromEntries(entries) };
}

export function movePath(path: string, webhookPath: string): string {
  return path === DEFAULT_PATH || path.startsWith(`${DEFAULT_PATH}/`)
    ? webhookPath + path.slice(DEFAULT_PATH.length)
    : path;
}

type Operations = Record<string, { responses?: unknown; description?: unknown }>;
type Components = Record<string, Record<string, unknown>>;

/**
 * The part of the contract for REST requests: the operations with their parameters and bodies, and the schemas that these name. The rest is omitted:
 * it is most of the document, it is not used here, and each included schema is compiled.
 */
export function restPart(document: object): object {
  const all = document as { paths: Record<string, Operations>; components: Components } & Record<string, unknown>;
  const requests = Object.entries(all.paths).filter(([path]) => path.startsWith("/api/"));
  const paths = Object.fromEntries(requests.map(([path, operations]) => [path, requestsOf(operations)]));
  const { openapi, info, servers } = all;
  return { openapi, info, servers, paths, components: namedIn(paths, all.components) };
}

/** The components that a value refers to, directly or through other components. */
function namedIn(value: unknown, components: Components): Components {
  const named: Components = {};
  const collect = (text: string) => {
    for (const [, kind = "", name = ""] of text.matchAll(/"#\/components\/(\w+)\/([^/"]+)"/g)) {
      named[kind] ??= {};
      if (name in named[kind]) continue;
      named[kind][name] = components[kind]?.[name];
      collect(JSON.stringify(named[kind][name]));
    }
  };
  collect(JSON.stringify(value));
  return named;
}

function requestsOf(operations: Operations): object {
  return Object.fromEntries(
    Object.entries(operations).map(([method, operation]) => {
      return [method, { ...operation, security: [], responses: { default: { description: "Not looked at here." } } }];
    }),
  );
}

/** Most callers come by the same address. All of them get the same bytes, so that a thousand slow readers hold them once. */
function latest(make: (url: string) => string): (url: string) => Buffer {
  let last: { url: string; bytes: Buffer } | undefined;
  return (url) => {
    if (last?.url !== url) last = { url, bytes: Buffer.from(make(url)) };
    return last.bytes;
  };
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
