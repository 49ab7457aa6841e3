import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { CallToolResult, Tool as ServerTool } from "@modelcontextprotocol/sdk/types.js";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { type Credit, createCredit } from "#kit/credit.ts";
import { HOPS_KEY, isLoop, loopWords } from "#kit/hops.ts";
import { once } from "#kit/once.ts";
import type { Program } from "#kit/programs/program.ts";
import { ProgramNotStarted } from "#kit/programs/start.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import { type Tool, ToolError } from "../tool.ts";
import { openHttpTransport } from "./http.ts";
import { type Listed, listTools, modelNameOf, textOfAnswer } from "./server-tools.ts";
import { openStdioTransport } from "./stdio.ts";

export type ServerSettings = {
  name: string;
  version: string;
  reach: ({ type: "stdio" } & Program) | { type: "http"; url: string; headers: Readonly<Record<string, string>> };
  callMs: number;
  outputCharacters: number;
};

/** `failed` is called for each failed start: at most once in a pause. */
type ServerParts = { clock: Clock; say: (said: StderrLine) => void; failed: (reason: string) => void };
/** `missing`: the reasons why wanted tools are not among them. */
type Offered = { tools: Tool[]; missing: string[] };
/** `calls`: the number of calls that wait for an answer. */
type Connection = {
  client: Client;
  listed: Listed;
  calls: number;
  isDoubted: boolean;
  /** Its session is over. It is closed when no call waits any more: each finds that out for itself. */
  isExpired: boolean;
  /** The reason why the gateway ended it, if it did. */
  excess: () => string | undefined;
  /** Resolves when nothing of it is left. */
  close: () => Promise<void>;
};

const START_MS = 10_000;
/** The time in which a server must give a sign of life after a call that took too long. */
const SIGN_MS = 10_000;
/** The time after the end of a call at which its request is aborted, even if data still arrives. */
const LATE_MS = 1_000;
/**
 * The limit on requests of a server. We offer it nothing: a ping is answered, and any other request is refused. A server that
 * sends more is ended.
 */
const REQUESTS = { atOnce: 20, aSecond: 2 };
/** The limit on messages that a server sends, of any kind. A server that sends more is ended. */
const MESSAGES = { atOnce: 10_000, aSecond: 1_000 };
/** The shortest pause after a failed start. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** One MCP server. It is started at the first request for its tools, kept running, and started again after it has ended. */
export class ToolServer {
  readonly name: string;
  readonly #settings: ServerSettings;
  readonly #parts: ServerParts;
  readonly #closing = new AbortController();
  #open: Promise<Connection> | undefined;
  /** The open one and others, until nothing of them is left. */
  readonly #all = new Set<Promise<Connection>>();
  #failures = 0;
  #failed: { until: number; reason: string } | undefined;

  constructor(settings: ServerSettings, parts: ServerParts) {
    this.name = settings.name;
    this.#settings = settings;
    this.#parts = parts;
  }

  /** The current tools that `wanted` names; `*` stands for all. Never throws. */
  async tools(wanted: readonly string[], hops: number): Promise<Offered> {
    const isWanted = (tool: string): boolean => wanted.includes("*") || wanted.includes(tool);
    try {
      const { tools, large } = (await this.#connection()).listed;
      const has = new Set(["*", ...large, ...tools.map((tool) => tool.name)]);
      const lacking = wanted.filter((tool) => !has.has(tool));
      const tooLarge = large.filter(isWanted);
      const missing = [
        ...(lacking.length > 0 ? [`none of its tools: ${lacking.join(", ")}`] : []),
        ...(tooLarge.length > 0 ? [`too large for a model: ${tooLarge.join(", ")}`] : []),
      ];
      return { tools: tools.filter((tool) => isWanted(tool.name)).map((tool) => this.#offered(tool, hops)), missing };
    } catch (error) {
      return { tools: [], missing: [reasonOf(error)] };
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#all].map(async (opening) => await (await opening).close()));
  }

  #connection(): Promise<Connection> {
    const { signal } = this.#closing;
    if (signal.aborted) throw new ToolError(`The server ${this.name} is no longer configured.`);
    if (this.#open) return this.#open;
    const failed = this.#failed;
    if (failed && this.#parts.clock.monotonic() < failed.until) throw new ToolError(failed.reason);
    const onClosed = () => {
      this.#forget(opening);
      opening
        .then((one) => one.close())
        .finally(() => this.#all.delete(opening))
        .catch(() => {});
    };
    const opening = connect(this.#settings, this.#parts, { onClosed, closing: signal });
    this.#open = opening;
    this.#all.add(opening);
    opening.then(
      () => {
        this.#failures = 0;
        this.#failed = undefined;
      },
      (error: unknown) => this.#fail(opening, error),
    );
    return opening;
  }

  #fail(opening: Promise<Connection>, error: unknown): void {
    const { clock, failed } = this.#parts;
    this.#forget(opening);
    this.#all.delete(opening);
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    const reason = reasonOf(error);
    this.#failed = { until: clock.monotonic() + pause, reason };
    if (!this.#closing.signal.aborted) failed(reason);
  }

  #forget(opening: Promise<Connection>): void {
    if (this.#open === opening) this.#open = undefined;
  }

  #offered(tool: ServerTool, hops: number): Tool {
    return {
      name: modelNameOf(this.name, tool.name),
      description: tool.description ?? tool.title ?? tool.name,
      isOutside: true,
      parameters: tool.inputSchema,
      call: (args, signal) => this.#call(tool.name, args, hops, signal),
    };
  }

  async #call(tool: string, args: unknown, hops: number, signal: AbortSignal, isAgain = false): Promise<string> {
    if (isLoop(hops)) throw new ToolError(`The tool was not called: ${loopWords(hops)}.`);
    const { callMs, outputCharacters } = this.#settings;
    const opening = this.#connection();
    const one = await opening;
    const given = args as Record<string, unknown> | undefined;
    // The client never removes its listener: it gets a signal that ends with the call.
    const own = new AbortController();
    const stop = () => own.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const limits = { signal: own.signal, timeout: callMs, maxTotalTimeout: callMs };
    let answer: CallToolResult;
    one.calls++;
    try {
      const request = { name: tool, arguments: given ?? {}, _meta: { [HOPS_KEY]: hops + 1 } };
      answer = (await one.client.callTool(request, undefined, limits).finally(() => one.calls--)) as CallToolResult;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const excess = one.excess();
      if (excess !== undefined) throw new ToolError(`The call failed: ${excess}.`);
      if (isExpired(error)) {
        this.#forget(opening);
        one.isExpired = true;
        // The tool was not called: the server does not know the session any more.
        if (!isAgain) return await this.#call(tool, args, hops, signal, true);
      }
      if (isLate(error)) doubt(one, this.#parts);
      throw new ToolError(`The call failed: ${reasonOf(error)}.`);
    } finally {
      signal.removeEventListener("abort", stop);
      if (one.isExpired && one.calls === 0) void one.close();
    }
    const text = textOfAnswer(answer, outputCharacters);
    if (answer.isError) throw new ToolError(text === "" ? "The tool failed without a reason." : text);
    return text;
  }
}

/**
 * After a call that took too long the server is slow, or stuck for good. If it does not even answer a ping, it is ended, and
 * the next turn starts it again.
 */
function doubt(one: Connection, { clock, failed }: ServerParts): void {
  if (one.isDoubted) return;
  one.isDoubted = true;
  const stop = clock.after(SIGN_MS, () => {
    failed("it did not respond for 10 s after a call, and was ended");
    void one.close();
  });
  const over = () => {
    stop();
    one.isDoubted = false;
  };
  // Any answer, even an error, shows that the server responds.
  one.client.ping({ timeout: 2 * SIGN_MS }).then(over, over);
}

async function connect(
  { reach, callMs, version }: ServerSettings,
  parts: ServerParts,
  { onClosed, closing }: { onClosed: () => void; closing: AbortSignal },
): Promise<Connection> {
  const requests = createCredit(parts.clock, REQUESTS);
  const messages = createCredit(parts.clock, MESSAGES);
  let excess: string | undefined;
  let hasStarted = false;
  const may = (credit: Credit, what: string): boolean => {
    if (excess !== undefined) return false;
    if (credit.has()) {
      credit.spend();
      return true;
    }
    refuse(`too many ${what}`);
    return false;
  };
  const refuse = (what: string): void => {
    if (excess !== undefined) return;
    excess = `it sent ${what}, and was ended`;
    if (hasStarted) parts.failed(excess);
    void end();
  };
  const mayTell = () => may(messages, "messages");
  const { transport, close } = openTransport({ reach, callMs }, { ...parts, mayTell, refuse });
  const client = new Client({ name: "agent-gateway", version }, { capabilities: {} });
  client.onclose = onClosed;
  // An error in a single message is no reason to end, and a call that waits for an answer has its own time limit.
  client.onerror = () => {};
  const end = once(async () => {
    await client.close().catch(() => {});
    await close();
  });
  const giveUp = () => void end();
  const stop = parts.clock.after(START_MS, () => {
    excess ??= "it did not answer in time";
    giveUp();
  });
  closing.addEventListener("abort", giveUp, { once: true });
  try {
    const connecting = client.connect(transport, { timeout: START_MS });
    const hearing = { mayAsk: () => may(requests, "requests of its own"), onChange: () => {} };
    // The client has its listener by now, and nothing has come yet.
    filterMessages(transport, hearing);
    await connecting;
    const connection: Connection = {
      client,
      listed: await listTools(client, START_MS),
      calls: 0,
      isDoubted: false,
      isExpired: false,
      excess: () => excess,
      close: end,
    };
    const refresh = refresher(client, connection);
    hearing.onChange = () => void refresh();
    hasStarted = true;
    return connection;
  } catch (error) {
    await end();
    throw excess === undefined ? error : new ToolError(excess);
  } finally {
    stop();
    closing.removeEventListener("abort", giveUp);
  }
}

/**
 * Passes on answers, and requests while the server may send them. The only relevant notification is the one about changed tools. For any other one,
 * the client's work costs much more than sending it.
 */
function filterMessages(transport: Transport, hearing: { mayAsk: () => boolean; onChange: () => void }): void {
  const hear = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (!("method" in message)) hear?.(message, extra);
    else if ("id" in message) {
      if (hearing.mayAsk()) hear?.(message, extra);
    } else if (message.method === "notifications/tools/list_changed") hearing.onChange();
  };
}

/** Reads the tools again, once at a time, for any number of requests. */
function refresher(client: Client, connection: Connection) {
  let isWanted = false;
  let isReading = false;
  return async (): Promise<void> => {
    isWanted = true;
    if (isReading) return;
    isReading = true;
    while (isWanted) {
      isWanted = false;
      connection.listed = await listTools(client, START_MS).catch(() => connection.listed);
    }
    isReading = false;
  };
}

function openTransport(
  { reach, callMs }: Pick<ServerSettings, "reach" | "callMs">,
  parts: ServerParts & { mayTell: () => boolean; refuse: (what: string) => void },
): { transport: Transport; close: () => Promise<void> } {
  if (reach.type === "http") {
    const longestMs = Math.max(callMs, START_MS) + LATE_MS;
    const { transport, close } = openHttpTransport({ ...reach, ...parts, longestMs });
    return { transport: transport as Transport, close };
  }
  const transport = openStdioTransport(reach, parts);
  return { transport, close: () => transport.close() };
}

/** Its session has ended: the next call starts another. */
function isExpired(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 404;
}

/** Servers use the client's own error codes, too: the client's own errors are recognised by their words. */
function isLate(error: unknown): boolean {
  return says(error, /^MCP error -32001: (Request timed out|Maximum total timeout)/);
}
function hasEnded(error: unknown): boolean {
  return says(error, /^MCP error -32000: Connection closed$/);
}

function says(error: unknown, words: RegExp): boolean {
  return error instanceof Error && words.test(error.message);
}

/** The text of an HTTP server's refusal, after the client's own words. */
function bodyIn(message: unknown): string {
  const [, body = ""] = /Error POSTing to endpoint: (.+)$/s.exec(String(message)) ?? [];
  return body === "" ? "" : `: ${body}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof ProgramNotStarted) return "its program cannot be started";
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === "number" && code >= 400) return cleanSentence(`it answered ${code}${bodyIn(message)}`, 200);
  if (isLate(error)) return "it did not answer in time";
  if (hasEnded(error)) return "it has ended";
  return cleanSentence(String(message ?? "it failed"), 200);
}
