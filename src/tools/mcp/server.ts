import type { CallToolResult } from "@modelcontextprotocol/client";
import { orAborted } from "#kit/abort.ts";
import { HOPS_KEY, isLoop, loopWords } from "#kit/hops.ts";
import { type Tool, ToolError } from "../tool.ts";
import { type Connection, connect, doubt, type ServerParts, type ServerSettings } from "./connection.ts";
import { isExpired, isLate, isOtherRevision, reasonOf } from "./errors.ts";
import { modelNameOf, type ServerTool, textOfAnswer } from "./server-tools.ts";

/** `missing`: the reasons why wanted tools are not among them. */
type Offered = { tools: Tool[]; missing: string[] };
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
  /** Its last start was in a revision before the one without sessions. */
  #wasOld = false;
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
      const one = await this.#connection();
      one.renew();
      const { tools, large, wrong } = one.listed;
      const has = new Set(["*", ...large, ...wrong, ...tools.map((tool) => tool.name)]);
      const lacking = wanted.filter((tool) => !has.has(tool));
      const tooLarge = large.filter(isWanted);
      const withWrongHeaders = wrong.filter(isWanted);
      const missing = [
        ...(lacking.length > 0 ? [`none of its tools: ${lacking.join(", ")}`] : []),
        ...(tooLarge.length > 0 ? [`too large for a model: ${tooLarge.join(", ")}`] : []),
        ...(withWrongHeaders.length > 0 ? [`with an invalid x-mcp-header: ${withWrongHeaders.join(", ")}`] : []),
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
    const opening = connect(this.#settings, this.#parts, { onClosed, closing: signal, wasOld: this.#wasOld });
    this.#open = opening;
    this.#all.add(opening);
    opening.then(
      ({ isModern }) => {
        this.#wasOld = !isModern;
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
    this.#wasOld = false;
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
      call: (args, signal) => this.#call(tool, args, hops, signal),
    };
  }

  async #call(tool: ServerTool, args: unknown, hops: number, signal: AbortSignal, isAgain = false): Promise<string> {
    if (isLoop(hops)) throw new ToolError(`The tool was not called: ${loopWords()}.`);
    const { callMs, outputCharacters } = this.#settings;
    const opening = this.#connection();
    const one = await orAborted(opening, signal);
    const { name, inputSchema } = tool;
    const given = args as Record<string, unknown> | undefined;
    // Without the schema of its results, which the client would compile.
    const toolDefinition = { name, inputSchema };
    let answer: CallToolResult;
    one.calls++;
    try {
      const request = { name, arguments: given ?? {}, _meta: { [HOPS_KEY]: hops + 1 } };
      const limits = { signal, timeout: callMs, maxTotalTimeout: callMs, toolDefinition };
      answer = await one.client.callTool(request, limits).finally(() => one.calls--);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const excess = one.excess();
      if (excess !== undefined) throw new ToolError(`The call failed: ${excess}.`);
      if (isExpired(error, one.isModern)) {
        this.#forget(opening);
        one.isExpired = true;
        if (!isAgain && (await this.#isUncalled(error, one, signal)))
          return await this.#call(tool, args, hops, signal, true);
      }
      if (isLate(error)) doubt(one, this.#parts);
      throw new ToolError(`The call failed: ${reasonOf(error)}.`);
    } finally {
      if (one.isExpired && one.calls === 0) void one.close();
    }
    const text = textOfAnswer(answer, outputCharacters);
    if (answer.isError) throw new ToolError(text === "" ? "The tool failed without a reason." : text);
    return text;
  }

  /**
   * Whether a call was not made that an expired connection refused. A server without sessions has none that could end: it refuses
   * anything with the same statuses, perhaps after the work was done, unless it has become an old server.
   */
  async #isUncalled(error: unknown, { isModern }: Connection, signal: AbortSignal): Promise<boolean> {
    if (!isModern || isOtherRevision(error)) return true;
    const now = await orAborted(this.#connection(), signal);
    return !now.isModern;
  }
}
