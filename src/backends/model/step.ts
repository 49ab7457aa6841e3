import type {
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";
import type { Used } from "../backend.ts";
import { isObject, jsonOf } from "../json.ts";
import { isCount } from "../used.ts";
import { brokeOff, FILTER_WORDS, failureOf, otherForm, quoted, RequestRefused, StrangeEvent } from "./failures.ts";
import type { Asking, Call, NextParts } from "./fetch.ts";
import type { OpenModel } from "./models.ts";

type Part = LanguageModelV3StreamPart;
type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;

/** The result of one call of a model. */
export type Step = {
  /** Its answer, to be shown to it again together with the answers of its tools. */
  content: AssistantPart[];
  calls: LanguageModelV3ToolCall[];
  /** Undefined if the provider does not report it. */
  used: Used | undefined;
};

/**
 * A piece of an answer: its text, text that no reader sees (thoughts, arguments of calls), the provider's own event, or another
 * sign of life.
 */
export type Heard = { text: string } | { unseen: string } | { raw: unknown } | "alive";

/** One call of a model. The call and its connection end when its signal aborts. Throws BackendErrors. */
export class Asked {
  readonly #model: OpenModel;
  readonly #call: Call = { wasSent: false, hasEvents: false, failure: undefined, hasEnded: false, onComment: () => {} };
  readonly #answer = new Answer();
  #nextParts: NextParts | undefined;
  #next: ReturnType<NextParts> | undefined;
  #failed: { error: unknown } | undefined;

  constructor(model: OpenModel) {
    this.#model = model;
  }

  async begin(options: Asking): Promise<void> {
    try {
      this.#nextParts = await this.#model.ask(options, this.#call);
    } catch (error) {
      throw this.#failureOf(error);
    }
  }

  /** The pieces since the last call; undefined at the end. */
  async next(): Promise<readonly Heard[] | undefined> {
    if (this.#failed) throw this.#failureOf(this.#failed.error);
    try {
      const parts = await this.#read();
      return parts === "alive" ? [parts] : parts && this.#heardIn(parts);
    } catch (error) {
      throw this.#failureOf(error);
    }
  }

  /** Joins pieces of text that came together. */
  #heardIn(parts: readonly Part[]): Heard[] {
    const heard: Heard[] = [];
    let text = "";
    try {
      for (const part of parts) {
        this.#answer.take(part);
        if (part.type === "text-delta") text += part.delta;
        else if (part.type === "reasoning-delta" || part.type === "tool-input-delta")
          heard.push({ unseen: part.delta });
        else if (part.type === "raw") heard.push({ raw: part.rawValue });
        else if (SIGNS.has(part.type)) heard.push("alive");
      }
    } catch (error) {
      this.#failed = { error };
    }
    if (text !== "") heard.push({ text });
    return heard;
  }

  /** The whole answer, after the last piece. */
  end(): Step {
    if (!this.#answer.isKnown && this.#call.hasEvents) throw this.#otherForm();
    return this.#answer.whole(this.#call.hasEnded);
  }

  /** A comment may come before the expected part. The next call then waits for the same part again. */
  #read(): Promise<readonly Part[] | "alive" | undefined> {
    return new Promise((resolve, reject) => {
      this.#next ??= (this.#nextParts as NextParts)();
      this.#call.onComment = () => resolve("alive");
      this.#next.then((parts) => {
        this.#next = undefined;
        resolve(parts);
      }, reject);
    });
  }

  #failureOf(error: unknown): unknown {
    const { failure, wasSent, hasEvents } = this.#call;
    if (failure !== undefined) return failure;
    const { isStrange, value } = contentOf(error);
    const isOther = isStrange && hasEvents && !this.#answer.isKnown && !hasError(value);
    return isOther ? this.#otherForm() : inOurWords(error, value, wasSent);
  }

  #otherForm(): BackendError {
    return otherForm(this.#model.settings.provider.type);
  }
}

/**
 * Parts that show that the model is at work. The start of an answer does not: some servers send it at once, and then queue the
 * request.
 */
const SIGNS: ReadonlySet<Part["type"]> = new Set<Part["type"]>([
  ...(["text-start", "text-end", "reasoning-start", "reasoning-end", "tool-input-start", "tool-input-end"] as const),
  ...(["tool-call", "tool-result", "source", "file"] as const),
]);

/** Errors of the SDK for data in an unknown form, or for no data in a known form. */
const STRANGE = new Set(["AI_TypeValidationError", "AI_JSONParseError", "AI_InvalidResponseDataError"]);

/**
 * The error or event that came in place of an answer. SDKs put the stream's first event into an error as if a call had failed.
 */
const contentOf = (error: unknown): { isStrange: boolean; value: unknown } => {
  if (!(error instanceof Error)) return { isStrange: false, value: error };
  const { responseBody } = error as { responseBody?: unknown };
  const body = typeof responseBody === "string" ? jsonOf(responseBody) : undefined;
  const strange = [error, error.cause, body].find(
    (one) => one instanceof StrangeEvent || STRANGE.has(String(Object(one).name)),
  );
  return strange ? { isStrange: true, value: Object(strange).value } : { isStrange: false, value: body };
};

const hasError = (value: unknown): boolean => isObject(value) && "error" in value;

/** An error of the SDK itself: from before there was a request, or for an answer that it could not read. */
const inOurWords = (error: unknown, value: unknown, wasSent: boolean): BackendError => {
  if (error instanceof BackendError) return error;
  const { name, message } = error instanceof Error ? error : { name: "", message: "" };
  // Its stream ended without saying so.
  if (name === "AI_InvalidResponseDataError") return brokeOff(quoted(`${name}: ${message}`));
  if (!wasSent && (name === "AI_InvalidArgumentError" || name === "AI_TypeValidationError"))
    return new BackendError("the model's `options` are none that its provider takes", { cause: error });
  // A provider tells of its own failure, perhaps in a form that its SDK does not know.
  const isTold = name === "" || name === "AI_APICallError" ? value !== undefined : hasError(value);
  if (isTold) return failureOf({ status: undefined, error: value, retryAfterMs: undefined });
  return new BackendError("what the provider answered could not be read", { cause: quoted(`${name}: ${message}`) });
};

/** Puts an answer together from its parts. */
class Answer {
  readonly #content: AssistantPart[] = [];
  readonly #open = new Map<string, TextPart | ReasoningPart>();
  readonly #calls: LanguageModelV3ToolCall[] = [];
  #finish: Extract<Part, { type: "finish" }> | undefined;

  /** True if any data came in a form of this provider. */
  get isKnown(): boolean {
    const { finishReason, usage } = this.#finish ?? {};
    return this.#content.length > 0 || finishReason?.raw !== undefined || usageIn(usage) !== undefined;
  }

  take(part: Part): void {
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
      case "tool-call":
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
      throw new RequestRefused("the model had used up what it may write before it began its reply");
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
    this.#calls.push(call);
    const { toolCallId, toolName, providerMetadata } = call;
    const options = providerMetadata ? { providerOptions: providerMetadata } : {};
    this.#content.push({ type: "tool-call", toolCallId, toolName, input: argumentsOf(call) ?? {}, ...options });
  }
}

/** The arguments of a call; undefined if they are no object. */
export const argumentsOf = ({ input }: LanguageModelV3ToolCall): Record<string, unknown> | undefined => {
  const value = input.trim() === "" ? {} : jsonOf(input);
  return isObject(value) && !Array.isArray(value) ? value : undefined;
};

const usageIn = (usage: LanguageModelV3Usage | undefined): Used | undefined => {
  const { inputTokens, outputTokens } = usage ?? {};
  if (inputTokens?.total === undefined && outputTokens?.total === undefined) return undefined;
  return {
    input: countOf(inputTokens?.total),
    output: countOf(outputTokens?.total),
    cached: countOf(inputTokens?.cacheRead),
    reasoning: countOf(outputTokens?.reasoning),
  };
};

const countOf = (value: unknown): number => (isCount(value) ? value : 0);
