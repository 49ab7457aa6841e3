import type { IncomingMessage } from "node:http";

const SLASH = 47;

/** The request's target as a path. A client may send the whole address, as it does to proxies. */
export function originForm(req: IncomingMessage): string {
  const { url = "/" } = req;
  if (url.charCodeAt(0) !== SLASH && /^https?:/i.test(url) && URL.canParse(url)) {
    const { pathname, search } = new URL(url);
    req.url = pathname + search;
  }
  return req.url ?? "/";
}
