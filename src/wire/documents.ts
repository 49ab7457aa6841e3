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

/** The contract of the REST door alone, as what validates it needs no more. */
export const restPart = (document: object): object => {
  const { paths } = document as { paths: Record<string, unknown> };
  return { ...document, paths: Object.fromEntries(Object.entries(paths).filter(([path]) => path.startsWith("/api/"))) };
};

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};
