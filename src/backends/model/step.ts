import type {
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import type { Used } from "../backend.ts";
import { isObject, jsonOf } from "../json.ts";
import { isCount } from "../token-counts.ts";
import { brokeOff, FILTER_WORDS, failureOfCall, otherForm, RequestRefused } from "./failures.ts";
import type { Asking, Call } from "./fetch.ts";
import type { OpenModel } from "./providers.ts";
import { type Spending, usageInEvent } from "./spending.ts";
import { CallSizes, type ToolLimits } from "./tool-limits.ts";

type Part = LanguageModelV3StreamPart;
type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;

/** A call of a tool. `args`: undefined if its arguments are not an object. */
/** `input`: the arguments as the model wrote them; `args` are undefined if they are not a JSON object. */
export type ToolCall = {
  toolCallId: string;
  toolName: string;
  input: string;
  args: Record<string, unknown> | undefined;
};

/** The result of one call of a model. */
export type Step = {
  /** Its answer, to be shown to it again together with the answers of its tools. */
  content: AssistantPart[];
  calls: ToolCall[];
  /** Undefined if the provider does not report it. */
  used: Used | undefined;
};

/** A piece of an answer: its text, or a sign of life. */
type Piece = { text: string } | { alive: true };

const ALIVE: Piece = { alive: true };

/**
 * Calls a model once: yields the pieces of its answer as they come, and returns the whole. The call and its connection end when
 * its signal aborts. `spending` counts all output, also output that no reader gets. Throws BackendErrors.
 */
export async function* askOnce(
  { ask, settings }: OpenModel,
  options: Asking,
  spending: Spending,
  limits: ToolLimits,
): AsyncGenerator<Piece, Step> {
  const { type } = settings.provider;
  const call: Call = { wasSent: false, hasEvents: false, failure: undefined, hasEnded: false, onComment: () => {} };
  const answer = new Answer(limits);
  try {
    for await (const parts of ask(options, call)) {
      const { text, isAlive, failed } = answer.take(parts, spending);
      if (text !== "") yield { text };
      else if (isAlive) yield ALIVE;
      if (failed) throw failed.error;
    }
  } catch (error) {
    throw failureOfCall(error, call, answer.isKnown, type);
  }
  if (!answer.isKnown && call.hasEvents) throw otherForm(type);
  return answer.whole(call.hasEnded);
}

/**
 * Parts that show that the model is at work. The start of an answer does not: some servers send it at once, and then queue the
 * request.
 */
const SIGNS: ReadonlySet<Part["type"] | "comment"> = new Set([
  ...(["comment", "text-start", "text-end", "reasoning-start", "reasoning-end"] as const),
  ...(["tool-input-start", "tool-input-end", "tool-call", "tool-result", "source", "file"] as const),
]);

/** Puts an answer together from its parts. */
class Answer {
  readonly #content: AssistantPart[] = [];
  readonly #open = new Map<string, TextPart | ReasoningPart>();
  readonly #calls: ToolCall[] = [];
  /** The sizes of calls that arrive in pieces, and of whole calls, which have other ids. */
  readonly #coming: CallSizes;
  readonly #whole: CallSizes;
  #finish: Extract<Part, { type: "finish" }> | undefined;

  constructor(limits: ToolLimits) {
    this.#coming = new CallSizes(limits);
    this.#whole = new CallSizes(limits);
  }

  /** True if any data had the format of this provider. */
  get isKnown(): boolean {
    const { finishReason, usage } = this.#finish ?? {};
    return this.#content.length > 0 || finishReason?.raw !== undefined || usageIn(usage) !== undefined;
  }

  /** Processes parts that arrived together, up to the first one that is an error. */
  take(parts: readonly (Part | { type: "comment" })[], spending: Spending) {
    let text = "";
    let isAlive = false;
    try {
      for (const part of parts) {
        if (part.type === "text-delta" || part.type === "reasoning-delta" || part.type === "tool-input-delta") {
          spending.write(part.delta.length);
          if (part.type === "text-delta") text += part.delta;
          else isAlive = true;
        } else if (part.type === "raw") spending.reported = usageInEvent(part.rawValue) ?? spending.reported;
        else isAlive ||= SIGNS.has(part.type);
        if (part.type !== "comment") this.#add(part);
      }
    } catch (error) {
      return { text, isAlive, failed: { error } };
    }
    return { text, isAlive, failed: undefined };
  }

  #add(part: Part): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#begin(part.type === "text-start" ? "text" : "reasoning", part.id);
        this.#mark(part);
        return;
      case "text-delta":
      case "reasoning-delta": {
        const open = this.#open.get(part.id);
        if (open) open.text += part.delta;
        this.#mark(part);
        return;
      }
      case "text-end":
      case "reasoning-end":
        this.#mark(part);
        return;
      case "tool-input-delta":
        this.#coming.add(part.id, part.delta.length);
        return;
      case "tool-call":
        this.#whole.add(part.toolCallId, part.input.length);
        this.#call(part);
        return;
      case "error":
        // The error says that the stream has no finish reason. The end of the stream is checked elsewhere.
        if (!(Object(part.error).name === "AI_InvalidResponseDataError" && this.isKnown)) throw part.error;
        return;
      case "finish":
        this.#finish = part;
    }
  }

  /** `hasEnded`: the stream reported its end, for any reason. */
  whole(hasEnded: boolean): Step {
    const { finishReason, usage } = this.#finish ?? {};
    if (!finishReason) throw brokeOff();
    if (!finishReason.raw && (finishReason.unified === "error" || finishReason.unified === "other") && !hasEnded)
      throw brokeOff();
    const content = this.#content.filter((part) => part.type !== "text" || part.text !== "");
    const isEmpty = this.#calls.length === 0 && !content.some((part) => part.type === "text");
    if (finishReason.unified === "content-filter") throw new RequestRefused(FILTER_WORDS);
    if (finishReason.unified === "length" && isEmpty)
      throw new RequestRefused("the model reached its output limit before it began its reply");
    return { content, calls: this.#calls, used: usageIn(usage) };
  }

  #begin(type: "text" | "reasoning", id: string): void {
    const part = { type, text: "" };
    this.#open.set(id, part);
    this.#content.push(part);
  }

  /** Signatures and similar metadata, which the provider wants to see again unchanged. */
  #mark(part: { id: string; providerMetadata?: TextPart["providerOptions"] }): void {
    const open = this.#open.get(part.id);
    if (open && part.providerMetadata) open.providerOptions = { ...open.providerOptions, ...part.providerMetadata };
  }

  #call(call: LanguageModelV3ToolCall): void {
    if (call.providerExecuted) return;
    const { toolCallId, toolName, input, providerMetadata } = call;
    const args = argumentsOf(call);
    this.#calls.push({ toolCallId, toolName, input, args });
    const options = providerMetadata ? { providerOptions: providerMetadata } : {};
    this.#content.push({ type: "tool-call", toolCallId, toolName, input: args ?? {}, ...options });
  }
}

/** The arguments of a call; undefined if they are not an object. */
function argumentsOf({ input }: LanguageModelV3ToolCall): Record<string, unknown> | undefined {
  const value = input.trim() === "" ? {} : jsonOf(input);
  return isObject(value) && !Array.isArray(value) ? value : undefined;
}

function usageIn(usage: LanguageModelV3Usage | undefined): Used | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  if (inputTokens?.total === undefined && outputTokens?.total === undefined) return undefined;
  const countOf = (value: unknown): number => (isCount(value) ? value : 0);
  return {
    input: countOf(inputTokens?.total),
    output: countOf(outputTokens?.total),
    cached: countOf(inputTokens?.cacheRead),
    reasoning: countOf(outputTokens?.reasoning),
  };
}
