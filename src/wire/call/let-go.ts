import { IncomingMessage, type ServerResponse } from "node:http";

/** What Express and its validator leave on a request: the whole way it came, as functions that hold one another. */
const LEFT_BEHIND = ["body", "query", "params", "openapi", "route", "next", "res", "originalUrl", "_parsedUrl"];
const LISTENED = ["data", "end", "error", "close"];

/**
 * Drops what an exchange holds of a request that was read and will not be read again. For an answer that may take hours: it needs the
 * connection, and nothing else.
 */
export const letGo = (req: IncomingMessage, res: ServerResponse): void => {
  dropFields(req, LEFT_BEHIND);
  dropFields(res, ["locals"]);
  // The rest is read from the stream over HTTP/2, or is what the connection remembers: it costs nothing here.
  if (!(req instanceof IncomingMessage)) return;
  // One by one: to remove all at once leaves a dictionary behind that weighs more than they do.
  for (const event of LISTENED) for (const listener of req.listeners(event)) req.off(event, listener as () => void);
  req.rawHeaders = [];
  req.headers = {};
};

const dropFields = (from: object, names: readonly string[]): void => {
  const fields = from as Record<string, unknown>;
  // Their own alone: `query` of a request that Express has not seen is a getter of its prototype, which takes nothing.
  for (const name of names) if (Object.hasOwn(fields, name) && fields[name] !== undefined) fields[name] = undefined;
};
