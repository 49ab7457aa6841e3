import type {
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";
import type { Used } from "../backend.ts";
import type { Exchange } from "./exchange.ts";
import { brokeOff, FILTER_WORDS, failureOf, otherForm, quoted, RequestRefused } from "./failures.ts";
import type { OpenModel } from "./models.ts";
import type { PlainCall } from "./plain.ts";
import { countOf, type Ending } from "./wires/wire.ts";

type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;

/** What a model made of being asked once. */
export type Step = {
  /** Its answer, to be shown to it again with what its tools answered. */
  content: AssistantPart[];
  calls: LanguageModelV3ToolCall[];
  /** Undefined where the provider does not tell. */
  used: Used | undefined;
};

/** The text of an answer by its parts, in pieces, as far as it went past the SDK. */
export type PlainText = Map<string | undefined, string[]>;

export type StepHearer = {
  text(text: string): void;
  /** What it thinks, and the arguments of its calls. */
  unseen(text: string): void;
};

/** Asks a model once. What it writes is heard while it comes; `plain` is what of its text the SDK has not seen. Throws a BackendError. */
export const askOnce = async (
  model: OpenModel,
  call: PlainCall,
  exchange: Exchange,
  plain: PlainText,
  hearer: StepHearer,
): Promise<Step> => {
  const { type } = model.settings.provider;
  const requireKnown = () => {
    if (exchange.isStrange) throw otherForm(type);
  };
  const askSdk = () => {
    const asked = Promise.resolve(model.sdk.doStream({ ...call, abortSignal: model.keyOf(exchange) }));
    // It is left alone with an answer that it need not read.
    asked.catch(() => {});
    return asked;
  };
  const body = model.plain?.bodyOf(call);
  const place = body === undefined ? undefined : model.plain?.place;
  if (place) {
    const { origin, path, always, headers } = place;
    exchange.send({ origin, path, always, headers, body: body as string });
  }
  const asked = place ? undefined : askSdk();
  try {
    const ending = await (asked ? Promise.race([exchange.plainly(), asked.then(NO_ENDING)]) : exchange.plainly());
    if (asked && body !== undefined && exchange.sent) model.plain?.learn(exchange.sent, body);
    const answer = new Answer(plain);
    if (ending) {
      requireKnown();
      return answer.plainly(ending);
    }
    const reader = (await (asked ?? askSdk())).stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (value.type === "text-delta") hearer.text(value.delta);
      else if (value.type === "reasoning-delta" || value.type === "tool-input-delta") hearer.unseen(value.delta);
      answer.take(value);
    }
    requireKnown();
    return answer.whole(exchange.hasEnded);
  } catch (error) {
    const strange = exchange.isStrange ? otherForm(type) : undefined;
    const failure = exchange.failure ?? strange ?? inOurWords(error, exchange.sent !== undefined);
    // What still comes is for nobody.
    exchange.abort(failure);
    throw failure;
  }
};

const NO_ENDING = () => undefined;

/** What the SDK itself threw, before there was a request or of what it could not read in the answer. */
const inOurWords = (error: unknown, wasSent: boolean): BackendError => {
  if (error instanceof BackendError) return error;
  const { name, message } = error instanceof Error ? error : { name: "", message: String(error) };
  // Its stream ended without saying so.
  if (name === "AI_InvalidResponseDataError") return brokeOff(quoted(`${name}: ${message}`));
  if (!wasSent && (name === "AI_InvalidArgumentError" || name === "AI_TypeValidationError"))
    return new BackendError("the model's `options` are none that its provider takes", { cause: error });
  const { value } = Object(error) as { value?: unknown };
  // A provider tells of its own failure in a form that its SDK does not know.
  if (typeof value === "object" && value !== null && "error" in value)
    return failureOf({ status: undefined, error: value, retryAfterMs: undefined });
  return new BackendError("what the provider answered could not be read", { cause: quoted(`${name}: ${message}`) });
};

/** Puts an answer together from its parts. */
class Answer {
  readonly #plain: PlainText;
  readonly #content: AssistantPart[] = [];
  readonly #open = new Map<string, TextPart | ReasoningPart>();
  readonly #calls: LanguageModelV3ToolCall[] = [];
  #finish: Extract<LanguageModelV3StreamPart, { type: "finish" }> | undefined;

  constructor(plain: PlainText) {
    this.#plain = plain;
  }

  take(part: LanguageModelV3StreamPart): void {
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
        throw part.error instanceof Error
          ? inOurWords(part.error, true)
          : failureOf({ status: undefined, error: part.error, retryAfterMs: undefined });
      case "finish":
        this.#finish = part;
    }
  }

  /** An answer that was text alone. */
  plainly({ finish = "stop", used }: Ending): Step {
    return this.#step(finish, used);
  }

  whole(hasEnded: boolean): Step {
    const finish = this.#finish;
    if (!finish || (finish.finishReason.unified === "other" && !finish.finishReason.raw && !hasEnded)) throw brokeOff();
    const { unified } = finish.finishReason;
    if (unified === "error") throw brokeOff();
    return this.#step(unified === "content-filter" ? "filter" : unified, usedOf(finish.usage));
  }

  #step(finish: string, used: Used | undefined): Step {
    const content = this.#withPlainText();
    const isEmpty = this.#calls.length === 0 && !content.some((part) => part.type === "text");
    if (finish === "filter") throw new RequestRefused(FILTER_WORDS);
    if (finish === "length" && isEmpty)
      throw new RequestRefused("the model had used up what it may write before it began its reply");
    return { content, calls: this.#calls, used };
  }

  #begin(type: "text" | "reasoning", id: string): void {
    const part = { type, text: "" };
    this.#open.set(id, part);
    this.#content.push(part);
  }

  /** Signatures and the like, which the provider wants to see again as they are. */
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

  /** The SDK told where parts begin; the text that it has not seen is put there, or between what was thought and what was called. */
  #withPlainText(): AssistantPart[] {
    const content = [...this.#content];
    for (const [block, pieces] of this.#plain) {
      const text = pieces.join("");
      const open = block === undefined ? undefined : this.#open.get(block);
      if (open) {
        open.text = text + open.text;
        continue;
      }
      const from = content.findIndex(({ type }) => type !== "reasoning");
      content.splice(from === -1 ? content.length : from, 0, { type: "text", text });
    }
    return content.filter((part) => part.type !== "text" || part.text !== "");
  }
}

/** The arguments of a call; undefined for what is no object. */
export const argumentsOf = ({ input }: LanguageModelV3ToolCall): Record<string, unknown> | undefined => {
  try {
    const value: unknown = input.trim() === "" ? {} : JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

const usedOf = ({ inputTokens, outputTokens }: LanguageModelV3Usage): Used | undefined =>
  inputTokens.total === undefined && outputTokens.total === undefined
    ? undefined
    : {
        input: countOf(inputTokens.total),
        output: countOf(outputTokens.total),
        cached: countOf(inputTokens.cacheRead),
        reasoning: countOf(outputTokens.reasoning),
      };
