/** The specs as one running gateway serves them: with its address, and its webhook path in place of the default one. */
export type Served = { openapi: () => string; openrpc: () => string };

const DEFAULT_PATH = "/hooks";

export const serveDocuments = (
  documents: { openapi: object; openrpc: object },
  { url, webhookPath }: { url: string; webhookPath: string },
): Served => {
  const openapi = once(() => JSON.stringify(withAddress(documents.openapi, url, webhookPath)));
  const openrpc = once(() =>
    JSON.stringify({ ...documents.openrpc, servers: [{ name: "gateway", url: `${url}/rpc` }] }),
  );
  return { openapi, openrpc };
};

const withAddress = (document: object, url: string, webhookPath: string): object => {
  const { paths } = document as { paths: Record<string, unknown> };
  const moved = Object.entries(paths).map(([path, item]) => [movePath(path, webhookPath), item] as const);
  const servers = [{ url, description: "This gateway." }];
  return { ...document, servers, paths: Object.fromEntries(moved) };
};

const movePath = (path: string, webhookPath: string): string =>
  path === DEFAULT_PATH || path.startsWith(`${DEFAULT_PATH}/`) ? webhookPath + path.slice(DEFAULT_PATH.length) : path;

type Operations = Record<string, { responses?: unknown; description?: unknown }>;

/**
 * What requests to the REST door are held to: its operations with their parameters and bodies. Replies and examples are left out, as
 * they are most of the document and nothing here looks at them.
 */
export const restPart = (document: object): object => {
  const { paths, components } = document as { paths: Record<string, Operations>; components: Record<string, unknown> };
  const { schemas, parameters } = components;
  const requests = Object.entries(paths).filter(([path]) => path.startsWith("/api/"));
  return {
    ...document,
    components: { schemas, ...(parameters !== undefined && { parameters }) },
    paths: Object.fromEntries(requests.map(([path, operations]) => [path, requestsOf(operations)])),
  };
};

const requestsOf = (operations: Operations): object =>
  Object.fromEntries(
    Object.entries(operations).map(([method, operation]) => {
      return [method, { ...operation, security: [], responses: { default: { description: "Not looked at here." } } }];
    }),
  );

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};
