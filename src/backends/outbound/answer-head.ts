export type AnswerHeaders = Record<string, string | string[] | undefined>;

/** Why an answer is none. By its code, as of all connections that fail: what came may be anything. */
export class NoAnswer extends Error {
  readonly code: string;
  constructor(code: "HPE_INVALID" | "HPE_HEADER_OVERFLOW" | "ECONNRESET", why: string) {
    super(why);
    this.code = code;
  }
}
export const invalid = (why: string): NoAnswer => new NoAnswer("HPE_INVALID", why);

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const LENGTH = /^\d{1,15}$/;

export type AnswerHead = {
  readonly status: number;
  readonly isNew: boolean;
  readonly headers: Readonly<AnswerHeaders>;
};

/** What was read last: within a second a server that is asked often says the same again and again. */
const known = new Map<string, AnswerHead>();
const MOST_KNOWN = 32;
const MOST_CHARACTERS = 1_024;

/** The head of an answer, without the line that ends it. Strict: what could be read in two ways is refused. Who reads one changes nothing of it. */
export const readAnswerHead = (text: string): AnswerHead => {
  if (text.length > MOST_CHARACTERS) return readLines(text);
  let head = known.get(text);
  if (head !== undefined) return head;
  head = readLines(text);
  if (known.size === MOST_KNOWN) known.clear();
  known.set(text, head);
  return head;
};

const readLines = (text: string): AnswerHead => {
  const lines = text.split("\r\n");
  const [, minor, code] = STATUS_LINE.exec(lines[0] as string) ?? [];
  if (code === undefined) throw invalid("no line with a status");
  const headers: AnswerHeaders = {};
  for (let n = 1; n < lines.length; n++) takeLine(headers, lines[n] as string);
  return { status: Number(code), isNew: minor === "1", headers };
};

const takeLine = (headers: AnswerHeaders, line: string): void => {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0)).toLowerCase();
  const value = trimmed(line, colon + 1);
  if (!NAME.test(name) || !VALUE.test(value)) throw invalid("a header that is none");
  const known = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (known === undefined) headers[name] = value;
  else headers[name] = [...(Array.isArray(known) ? known : [known]), value];
};

const trimmed = (line: string, start: number): string => {
  let from = start;
  let to = line.length;
  while (from < to && isBlank(line.charCodeAt(from))) from++;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to--;
  return line.slice(from, to);
};
const isBlank = (unit: number): boolean => unit === 32 || unit === 9;

/** How its end is known: by its length, by its chunks, or as the connection closes. */
export const framingOf = (status: number, headers: AnswerHeaders): number | "chunked" | "close" => {
  const { "transfer-encoding": encoding, "content-length": length } = headers;
  if (status === 204 || status === 304) return 0;
  if (encoding !== undefined) {
    if (String(encoding).toLowerCase() !== "chunked" || length !== undefined) throw invalid("a body of unknown form");
    return "chunked";
  }
  if (length === undefined) return "close";
  if (typeof length !== "string" || !LENGTH.test(length)) throw invalid("a length that is none");
  return Number(length);
};

/** Without a word of the server's. One that says how long it keeps a connection is not asked in the last moments of that. */
export const KEPT_MS = 4_000;
const MOST_KEPT_MS = 600_000;
const LAST_MOMENTS_MS = 2_000;

const TIMEOUT = /(?:^|[,;\s])timeout=(\d{1,9})/i;

export const keptFor = (isNew: boolean, { connection, "keep-alive": hint }: AnswerHeaders): number => {
  if (connection !== undefined || !isNew) {
    const words = String(connection ?? "").toLowerCase();
    if (words.includes("close") || !(isNew || words.includes("keep-alive"))) return 0;
  }
  const seconds = hint === undefined ? undefined : TIMEOUT.exec(String(hint))?.[1];
  if (seconds === undefined) return KEPT_MS;
  return Math.min(Math.max(Number(seconds) * 1_000 - LAST_MOMENTS_MS, 0), MOST_KEPT_MS);
};
