type Headers = Readonly<Record<string, string>>;

/** Headers that each request of its kind has: looked at once, and written once. */
export type FixedHeaders = { readonly lines: string; readonly host: string | undefined };

export type OutgoingRequest = {
  origin: string;
  path: string;
  always?: FixedHeaders | undefined;
  /** Beside those. */
  headers: Headers;
  body: string;
};

/** What could end a line, or a header, before its end. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PATH = /^\/[\x21-\xff]*$/;
/** How the message is framed, and what becomes of its connection, is not for a configuration to say. */
const OURS = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "expect", "te"]);

/** A request that cannot be one; its code says so to who knows what a connection's errors are called. */
export class NoRequest extends Error {
  readonly code = "UND_ERR_INVALID_ARG";
}

/** How the line of a header begins. A name is looked at once: a gateway sends few. */
const starts = new Map<string, string>();
const MOST_STARTS = 1_000;

const startOf = (name: string): string => {
  const known = starts.get(name);
  if (known !== undefined) return known;
  if (!NAME.test(name) || OURS.has(name.toLowerCase())) throw new NoRequest("a header that cannot be sent");
  const start = `${name}: `;
  if (starts.size < MOST_STARTS) starts.set(name, start);
  return start;
};

const linesOf = (headers: Headers): string => {
  let lines = "";
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    if (!VALUE.test(value)) throw new NoRequest("a header that cannot be sent");
    lines += `${startOf(name) + value}\r\n`;
  }
  return lines;
};

/** Throws NoRequest. */
export const fixHeaders = (headers: Headers): FixedHeaders => ({ lines: linesOf(headers), host: hostIn(headers) });

/** The `host` that a configuration names in place of the address's own. */
const hostIn = (headers: Headers): string | undefined => {
  for (const name in headers) if (name.length === 4 && name.toLowerCase() === "host") return headers[name];
  return undefined;
};

export const hostOf = ({ always, headers }: OutgoingRequest): string | undefined => always?.host ?? hostIn(headers);

/** The head of a POST. Throws NoRequest for what cannot be one. */
export const headOf = ({ path, always, headers }: OutgoingRequest, host: string | undefined, bytes: number): string => {
  if (!PATH.test(path)) throw new NoRequest("a path that cannot be asked for");
  const own = host === undefined ? "" : `host: ${host}\r\n`;
  const fixed = always === undefined ? "" : always.lines;
  return `POST ${path} HTTP/1.1\r\n${own}connection: keep-alive\r\n${fixed}${linesOf(headers)}content-length: ${bytes}\r\n\r\n`;
};
