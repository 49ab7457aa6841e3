import { isUtf8 } from "node:buffer";
import { BrokenAnswer, isObject, stringOr, textOf } from "#generated/clients/typescript/src/body.ts";
import { readSettings } from "#generated/clients/typescript/src/settings.ts";
import { readEvents } from "#generated/clients/typescript/src/sse.ts";
import type { Address } from "./address.ts";
import { weakestFor } from "./credentials.ts";
import { CliError, causeOf, NOT_ALLOWED, UNREACHABLE } from "./failures.ts";
import { linesOf, MOST_LINE_MIB } from "./lines.ts";
import { oneLine } from "./output.ts";
import { print, say } from "./terminal.ts";

type Id = string | number;
/** A message of JSON-RPC. The gateway validates it; these are the fields that a bridge needs. */
type Message = { id?: Id; method?: string; params?: Record<string, unknown> };
type Exchange = { stop: AbortController; isSubscription: boolean };

type Bridge = {
  url: string;
  key: string;
  /** The name of the key, for error messages. */
  keyName: string;
  underWay: Map<Id, Exchange>;
  /** The version that `initialize` agreed on. Clients without `initialize` name theirs in each request. */
  version: string | undefined;
  /** The latest failure that was reported. It is reported once, until a request succeeds. */
  trouble: string | undefined;
  /** True from a failure to reach the gateway until a request succeeds. */
  isAway: boolean;
  /** Pending while a reader of standard output is slow. */
  drained: Promise<void> | undefined;
};

/**
 * More requests at once are refused: each holds a connection.
 * @NOTE Each may also hold an answer in memory, while the reader of standard output is slow.
 */
const MOST_AT_ONCE = 100;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INTERNAL_ERROR = -32603;

/**
 * Connects standard input and output to `POST /mcp` of a gateway. A line of input is sent as it is, and each message of the answer is a line of
 * output. Requests run at the same time. A request that fails gets a JSON-RPC error, and the bridge continues: it works again once the
 * gateway does. Throws a TypeError for an invalid address. At the end of input, subscriptions are closed and other requests are finished. Messages to people go to standard error.
 */
export async function runBridge({ url: given, key, unused, credentials }: Address): Promise<void> {
  const { url } = readSettings({ url: given, anonymous: true });
  if (key === undefined)
    throw unused.key ?? new CliError("There is no key for the gateway.", NOT_ALLOWED, "set REST_API_KEY");
  const keyName = weakestFor(credentials.rest, "chat")?.name ?? "the key";
  const bridge: Bridge = {
    url: `${url}/mcp`,
    key,
    keyName,
    underWay: new Map(),
    version: undefined,
    trouble: undefined,
    isAway: false,
    drained: undefined,
  };
  if (process.stdin.isTTY)
    say(
      "This command is started by MCP clients: it reads MCP messages from standard input, one per line. Press Ctrl-D to end it.",
    );
  const exchanges = new Set<Promise<void>>();
  for await (const bytes of linesOf(process.stdin)) {
    const line = await decode(bridge, bytes);
    const message = line && (await readMessage(bridge, line));
    if (!line || !message) continue;
    if (exchanges.size >= MOST_AT_ONCE) {
      await answerError(bridge, message.id, `${MOST_AT_ONCE} requests are already in progress.`);
      continue;
    }
    const exchange = send(bridge, message, line).finally(() => exchanges.delete(exchange));
    exchanges.add(exchange);
  }
  for (const { stop, isSubscription } of bridge.underWay.values()) if (isSubscription) stop.abort();
  await Promise.all(exchanges);
}

/** The text of a line, without the spaces at its ends. A line that cannot be read is answered. */
async function decode(bridge: Bridge, bytes: Buffer | undefined): Promise<string | undefined> {
  if (bytes === undefined)
    return await refuse(bridge, INVALID_REQUEST, `A message is longer than ${MOST_LINE_MIB} MiB.`);
  if (!isUtf8(bytes)) return await refuse(bridge, PARSE_ERROR, "A line of standard input is not UTF-8.");
  return bytes.toString().trim();
}

/** The message of a line, if it has to be sent. A cancellation closes the request that it names, which is how HTTP cancels. */
async function readMessage(bridge: Bridge, line: string): Promise<Message | undefined> {
  const message = parse(line);
  if (message === undefined) return await refuse(bridge, PARSE_ERROR, "A line of standard input is not JSON.");
  if (!isObject(message))
    return await refuse(bridge, INVALID_REQUEST, "A line of standard input is not one JSON-RPC message.");
  // An answer is not sent: the gateway asks nothing of its clients.
  if (message.result !== undefined || message.error !== undefined) return undefined;
  if (message.method !== "notifications/cancelled") return message;
  if (isObject(message.params)) bridge.underWay.get(message.params.requestId as Id)?.stop.abort();
  return undefined;
}

/** Answers a line without a known id. */
async function refuse(bridge: Bridge, code: number, words: string): Promise<undefined> {
  say(words);
  await write(bridge, JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message: words } }));
}

/** Sends a message and writes the answer. Never rejects. */
async function send(bridge: Bridge, message: Message, line: string): Promise<void> {
  const { id, method } = message;
  const exchange: Exchange = { stop: new AbortController(), isSubscription: method === "subscriptions/listen" };
  if (id !== undefined) bridge.underWay.set(id, exchange);
  const { signal } = exchange.stop;
  try {
    const response = await fetch(bridge.url, {
      method: "POST",
      headers: headersOf(bridge, message),
      body: line,
      redirect: "manual",
      signal,
    });
    const isAnswered = await relay(bridge, response, message);
    if (id !== undefined && !isAnswered) throw new CliError(unansweredWords(bridge, exchange));
    recover(bridge);
  } catch (error) {
    if (!signal.aborted) await fail(bridge, message, error as Error);
  } finally {
    if (id !== undefined && bridge.underWay.get(id) === exchange) bridge.underWay.delete(id);
  }
}

function unansweredWords({ url }: Bridge, { isSubscription }: Exchange): string {
  return isSubscription
    ? `The gateway at ${url} closed the subscription.`
    : `The gateway at ${url} did not answer the request.`;
}

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** The field of the params that the header `Mcp-Name` repeats. */
const NAME_FIELDS: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** The headers of a message: since 2026-07-28 they repeat its version, method and name, and a server compares them. */
function headersOf(
  { key, version }: Pick<Bridge, "key" | "version">,
  { method = "", params = {} }: Message,
): Record<string, string> {
  const headers = {
    authorization: `Bearer ${key}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
  const claimed = isObject(params) && isObject(params._meta) ? params._meta[VERSION_KEY] : undefined;
  if (typeof claimed !== "string")
    return version === undefined ? headers : { ...headers, "mcp-protocol-version": version };
  const name = Object.hasOwn(NAME_FIELDS, method) ? params[NAME_FIELDS[method] as string] : undefined;
  return {
    ...headers,
    "mcp-protocol-version": asHeader(claimed),
    "mcp-method": asHeader(method),
    ...(typeof name === "string" && { "mcp-name": asHeader(name) }),
  };
}

/** The names of the tools of a key. Throws the reason if there are none to read. */
export async function listTools(url: string, key: string, signal: AbortSignal): Promise<string[]> {
  const _meta = { [VERSION_KEY]: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const message = { id: 1, method: "tools/list", params: { _meta } };
  const headers = headersOf({ key, version: undefined }, message);
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const response = await fetch(`${url}/mcp`, { method: "POST", headers, body, redirect: "manual", signal });
  const answer = parse(await textOf(response));
  const { result, error } = isObject(answer) ? answer : {};
  if (isObject(result) && Array.isArray(result.tools)) return result.tools.map(({ name }) => String(name));
  throw new Error(stringOr(isObject(error) ? error.message : undefined, `HTTP ${response.status}`));
}

/** A text as the value of a header. A value that a header cannot hold unchanged is sent in base64, as the protocol specifies. */
function asHeader(text: string): string {
  const isUnchanged = /^[!-~](?:[ -~\t]*[!-~])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isUnchanged ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

/** Writes the JSON-RPC messages of an HTTP response. Returns true if one of them answers `message`. Throws if the response is an error without a JSON-RPC answer. */
async function relay(bridge: Bridge, response: Response, message: Message): Promise<boolean> {
  const type = response.headers.get("content-type") ?? "";
  if (response.ok && type.startsWith("text/event-stream")) {
    // A stream may stay open after its answer, for instance at a proxy.
    for await (const { data } of readEvents(response))
      if (data !== "" && (await deliver(bridge, data, message))) return true;
    return false;
  }
  const text = await textOf(response);
  const body = parse(text);
  const isMessage = isObject(body) && body.jsonrpc === "2.0";
  // The gateway refused the request before it read the id: a key, a rate limit, a surface that is off.
  if (!response.ok && !(isMessage && body.id === message.id)) throw refusalOf(bridge, response, body);
  if (message.id === undefined) return true;
  return isMessage && (await deliver(bridge, text, message));
}

/** Writes a message of the gateway. True if it answers the request; the answer to a request whose id could not be read gets its id. */
async function deliver(bridge: Bridge, text: string, { id, method }: Message): Promise<boolean> {
  const message = parse(text);
  if (!isObject(message)) throw new BrokenAnswer("a message is not a JSON object");
  const isAnswer =
    message.method === undefined && (message.id === id || message.id === null || message.id === undefined);
  if (isAnswer && method === "initialize" && isObject(message.result))
    bridge.version = stringOr(message.result.protocolVersion, undefined);
  // A line break in JSON is between two values.
  await write(
    bridge,
    isAnswer && message.id !== id ? JSON.stringify({ ...message, id }) : text.replace(/[\r\n]+/g, " "),
  );
  return isAnswer;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Writes a line to standard output, and waits until a slow reader has read enough. */
async function write(bridge: Bridge, line: string): Promise<void> {
  print(line);
  if (!process.stdout.writableNeedDrain) return;
  bridge.drained ??= new Promise<void>((resolve) => process.stdout.once("drain", resolve)).finally(() => {
    bridge.drained = undefined;
  });
  await bridge.drained;
}

/** Answers a request with its failure, which may have the code and data of the gateway's own. The same failure is reported to people once. */
async function fail(bridge: Bridge, { id, method }: Message, error: Error): Promise<void> {
  const words = wordsFor(bridge, error, method);
  if (bridge.trouble !== words) say(words);
  bridge.trouble = words;
  bridge.isAway ||= isUnreachable(error);
  await answerError(bridge, id, words, error instanceof CliError ? error.cause : {});
}

async function answerError(bridge: Bridge, id: Id | undefined, message: string, error: unknown = {}): Promise<void> {
  if (id === undefined) return;
  await write(
    bridge,
    JSON.stringify({ jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, ...(error as object), message } }),
  );
}

/** False for a refusal, and for an answer that cannot be read. */
function isUnreachable(error: Error): boolean {
  return error instanceof CliError ? error.exitCode === UNREACHABLE : !(error instanceof BrokenAnswer);
}

function recover(bridge: Bridge): void {
  if (bridge.isAway) say(`The gateway at ${bridge.url} answers again.`);
  bridge.trouble = undefined;
  bridge.isAway = false;
}

/** The statuses of a proxy whose gateway is away, and of a gateway that stops. */
const AWAY = new Set([502, 503, 504]);

/** The reason for a refusal, with the gateway's own words and its JSON-RPC error. */
function refusalOf({ url, keyName }: Bridge, { status, headers }: Response, body: unknown): CliError {
  const { error, detail, title } = isObject(body) ? body : {};
  const reason = stringOr(isObject(error) ? error.message : (detail ?? title), "");
  const words = (): string => {
    if (status === 401) return `The gateway at ${url} does not accept ${keyName}. Set a valid key in REST_API_KEY.`;
    const location = headers.get("location");
    if (location !== null)
      return `${url} points to ${oneLine(location)}, which this command does not follow. Set GATEWAY_URL to the final address.`;
    if (reason !== "") return oneLine(reason);
    if (status === 404)
      return `The server at ${url} does not serve MCP. Set GATEWAY_URL to the address of an Agent Gateway.`;
    return `The server at ${url} answered HTTP ${status}.`;
  };
  const exitCode = AWAY.has(status) ? UNREACHABLE : NOT_ALLOWED;
  return new CliError(words(), exitCode, undefined, isObject(error) ? error : undefined);
}

const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/** A failure in words. After a broken connection, a call may have taken effect. */
function wordsFor({ url }: Bridge, error: Error, method: string | undefined): string {
  if (error instanceof CliError) return error.message;
  if (error instanceof BrokenAnswer) return `The answer from ${url} cannot be read: ${error.message}.`;
  const { code = "" } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (NOT_SENT.test(code)) return `No answer from ${url}: ${causeOf(error)}. Start the gateway, or set GATEWAY_URL.`;
  const effect = method === "tools/call" ? " The call may have taken effect." : "";
  return `The connection to ${url} broke: ${causeOf(error)}.${effect}`;
}
