import { IncomingMessage } from "node:http";

const LISTENED = ["data", "end", "error", "close"];

/**
 * Drops what a request of HTTP/1.1 holds that was read and will not be read again. For an answer that may take hours: it needs the
 * connection, and nothing else.
 */
export const letGo = (req: IncomingMessage): void => {
  if (!(req instanceof IncomingMessage)) return;
  // One by one: to remove all at once leaves a dictionary behind that weighs more than they do.
  for (const event of LISTENED) for (const listener of req.listeners(event)) req.off(event, listener as () => void);
  req.rawHeaders = [];
  req.headers = {};
};
