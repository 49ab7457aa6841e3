import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { Chunk } from "../backend.ts";
import { createJoiner } from "../characters.ts";

/** The number of tool calls that one turn may have at once. */
const MOST_TOOLS = 1_000;

/** A reason for the timeline that names the setting to change. */
const NOT_ALLOWED = "it was not allowed: acp.permissions of the agent is deny";

/** The most characters of the arguments or the result of a tool call that are held. The core cuts further. */
const CONTENT_CHARACTERS = 32_768;

type Tool = {
  name: string;
  began: number;
  isRefused: boolean;
  input?: string | undefined;
  output?: string | undefined;
};

/** The reply of an agent to one prompt, built from its updates. */
export class Reply {
  readonly #clock: Clock;
  readonly #aliveMs: number;
  /** The chunks of one update that the reader has not read yet. */
  readonly #waiting: Chunk[] = [];
  readonly #tools = new Map<string, Tool>();
  readonly #whole = createJoiner();
  #outcome: { error?: unknown } | undefined;
  #wake = () => {};
  #resolveTaken = () => {};
  #message: string | undefined;
  #last = "";
  #isApart = false;
  #hasActed = false;
  #isSealed = false;
  characters = 0;
  /** True if the agent was denied anything. */
  wasRefused = false;

  constructor(clock: Clock, aliveMs: number) {
    this.#clock = clock;
    this.#aliveMs = aliveMs;
  }

  /** Applies an update of the session. Returns a promise if the reader must read it before the next one is applied. */
  take(update: SessionUpdate): Promise<void> | undefined {
    if (this.#outcome || this.#isSealed) return undefined;
    if (update.sessionUpdate === "agent_message_chunk") {
      const { content, messageId } = update;
      if (content?.type === "text" && typeof content.text === "string") this.#say(content.text, messageId ?? undefined);
      else this.#showAlive();
    } else if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") this.#use(update);
    else this.#showAlive();
    if (this.#waiting.length === 0) return undefined;
    return new Promise((resolve) => {
      this.#resolveTaken = resolve;
    });
  }

  /** The agent was denied this tool call, which it need not have announced before. */
  refuse({ toolCallId, title }: Pick<ToolUpdate, "toolCallId" | "title">): void {
    this.wasRefused = true;
    const id = String(toolCallId);
    if (!this.#tools.has(id)) this.#use({ sessionUpdate: "tool_call_update", toolCallId: id, title });
    const tool = this.#tools.get(id);
    if (tool) tool.isRefused = true;
  }

  /** The reply of the agent is complete. */
  seal(): void {
    this.#isSealed = true;
  }

  end(): void {
    for (const tool of this.#tools.values()) if (tool.isRefused) this.#note(tool, false);
    this.#outcome ??= {};
    this.#wake();
  }

  /** Ends it at once: unread text is thrown away. */
  fail(error: unknown): void {
    if (this.#outcome && "error" in this.#outcome) return;
    this.#outcome = { error };
    this.#waiting.length = 0;
    this.#resolveTaken();
    this.#wake();
  }

  /** Fails it, unless the reply was complete before. */
  lose({ message, retryable, cause }: BackendError): void {
    // Another try would repeat the text and the actions.
    const isWorthIt = retryable && !this.#hasActed && this.characters === 0;
    if (!this.#isSealed) this.fail(new BackendError(message, { retryable: isWorthIt, cause }));
  }

  async *chunks(): AsyncGenerator<Chunk, void> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) yield next;
      this.#resolveTaken();
      if (this.#outcome && "error" in this.#outcome) throw this.#outcome.error;
      if (this.#waiting.length > 0) continue;
      if (this.#outcome) return;
      const stop = this.#tools.size > 0 ? this.#clock.after(this.#aliveMs, () => this.#showAlive()) : undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      stop?.();
    }
  }

  #push(chunk: Chunk): void {
    this.#waiting.push(chunk);
    this.#wake();
  }

  #showAlive(): void {
    const newest = this.#waiting.at(-1);
    if (!newest || !("alive" in newest)) this.#push({ alive: true });
  }

  #say(cut: string, messageId: string | undefined): void {
    let text = this.#whole(cut);
    if (text === "") {
      this.#showAlive();
      return;
    }
    // Text after a tool call, or with another message id, starts a new paragraph.
    const isNext = this.#isApart || messageId !== this.#message;
    if (this.characters > 0 && isNext && !this.#last.endsWith("\n")) text = `\n\n${text}`;
    this.#isApart = false;
    this.#message = messageId;
    this.#last = text;
    this.characters += text.length;
    this.#push({ text });
  }

  #use({ toolCallId, title, name, status, rawInput, rawOutput, content }: ToolUpdate): void {
    this.#isApart = true;
    this.#hasActed = true;
    const id = String(toolCallId);
    const known = this.#tools.get(id);
    const tool = known ?? { name: nameOf(name ?? title), began: this.#clock.monotonic(), isRefused: false };
    tool.input = contentOf(rawInput) ?? tool.input;
    tool.output = contentOf(rawOutput) ?? textIn(content) ?? tool.output;
    if (status === "completed" || status === "failed") {
      this.#tools.delete(id);
      this.#note(tool, status === "completed");
    } else {
      if (this.#tools.size < MOST_TOOLS) this.#tools.set(id, tool);
      this.#showAlive();
    }
  }

  #note(tool: Tool, ok: boolean): void {
    const ms = Math.round(this.#clock.monotonic() - tool.began);
    const reason = tool.isRefused ? NOT_ALLOWED : "the tool failed";
    const { name, input, output } = tool;
    const content = {
      ...(input !== undefined && { arguments: input }),
      ...(ok && output !== undefined && { result: output }),
    };
    const detail = { tool: name, ok, ms, ...(ok ? {} : { reason }), ...content };
    this.#push({ note: { name: "tool.called", detail } });
  }
}

type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

/** A copy of a value that a program sent, so that the program's message is not held in memory. */
function contentOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Buffer.from(text.slice(0, CONTENT_CHARACTERS)).toString();
}

/** The texts of a tool call's content. */
function textIn(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part) => part?.content?.text).filter((text) => typeof text === "string");
  return texts.length === 0 ? undefined : contentOf(texts.join("\n"));
}

function nameOf(said: unknown): string {
  return (typeof said === "string" && cleanSentence(said, 80)) || "a tool";
}
