import type {
  JSONObject,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import { newBareId } from "#kit/ids.ts";
import { targetOf } from "#outbound/ask.ts";
import { eventsOf, type Sent } from "#outbound/server-events.ts";
import { isObject, jsonOf } from "../json.ts";
import { StrangeEvent } from "./failures.ts";
import { ANSWER_BYTES, type AskModel, type Call, EVENT_BYTES, type Send } from "./fetch.ts";
import type { ProviderSettings } from "./model-table.ts";

/** The provider's name, which is the key of the options of its models and of the metadata that it requires in later requests. */
export const CHAT = "openaiCompatible";

type Part = LanguageModelV3StreamPart | { type: "comment" };
type Json = Readonly<Record<string, unknown>>;

/**
 * Models that speak OpenAI's chat completions.
 * @NOTE The SDK for these takes three times the time that all the rest of the gateway takes for a token, in the streams between its parsers.
 */
export function createChatCompletions(settings: ProviderSettings, send: Send): (model: string) => AskModel {
  const { apiKey = "", baseUrl = "", headers: own } = settings;
  const target = targetOf(`${baseUrl.replace(/\/$/, "")}/chat/completions`);
  const headers = {
    "content-type": "application/json",
    ...(apiKey !== "" && { authorization: `Bearer ${apiKey}` }),
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toLowerCase(), value])),
  };
  return (model) =>
    async function* (options, call) {
      const body = JSON.stringify(requestOf(model, options));
      const answer = await send({ method: "POST", ...target, headers, body }, options.abortSignal, call);
      const reader = new AnswerReader(call);
      for await (const events of eventsOf(answer, ANSWER_BYTES, EVENT_BYTES)) yield reader.read(events);
      yield reader.end();
    };
}

function requestOf(model: string, options: LanguageModelV3CallOptions): Json {
  const { prompt, maxOutputTokens, temperature, tools = [], toolChoice, providerOptions } = options;
  const { reasoningEffort, textVerbosity, ...others } = providerOptions?.[CHAT] ?? {};
  return {
    model,
    max_tokens: maxOutputTokens,
    temperature,
    ...others,
    reasoning_effort: reasoningEffort ?? others.reasoning_effort,
    verbosity: textVerbosity ?? others.verbosity,
    messages: prompt.flatMap(messagesOf),
    tools: tools.length > 0 ? (tools as LanguageModelV3FunctionTool[]).map(toolOf) : undefined,
    tool_choice: toolChoice?.type,
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toolOf({ name, description, inputSchema }: LanguageModelV3FunctionTool): Json {
  return {
    type: "function",
    function: { name, description, parameters: inputSchema },
  };
}

function messagesOf(message: LanguageModelV3Message): Json[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: textIn(message.content, "text") }];
    case "assistant": {
      const { content } = message;
      const text = textIn(content, "text");
      const reasoning = textIn(content, "reasoning");
      const calls = content.flatMap((part) => (part.type === "tool-call" ? [part] : []));
      if (calls.length === 0) return [{ role: "assistant", content: text, reasoning_content: reasoning || undefined }];
      const tool_calls = calls.map(({ toolCallId: id, toolName: name, input, providerOptions }) => ({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(input) },
        ...providerOptions?.[CHAT],
      }));
      return [{ role: "assistant", content: text || null, reasoning_content: reasoning || undefined, tool_calls }];
    }
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result" && "value" in part.output
          ? [{ role: "tool", tool_call_id: part.toolCallId, content: part.output.value }]
          : [],
      );
  }
}

function textIn(content: Exclude<LanguageModelV3Message["content"], string>, type: "text" | "reasoning"): string {
  return content.flatMap((part) => (part.type === type && "text" in part ? [part.text] : [])).join("");
}

const COMMENT: Part = { type: "comment" };

/** `own`: its id among the calls of this answer. */
type ToolCall = { own: string; index: unknown; id: string; name: string; input: string; more: Json };

/** Converts the events of an answer to parts. */
class AnswerReader {
  readonly #call: Call;
  readonly #calls: ToolCall[] = [];
  #parts: Part[] = [];
  #open: "text" | "reasoning" | undefined;
  /** Deltas of the open kind that were received together. They become one part. */
  #deltas: string[] = [];
  #finish: LanguageModelV3FinishReason = { unified: "other", raw: undefined };
  #usage: Json | undefined;

  constructor(call: Call) {
    this.#call = call;
  }

  /** An unreadable event becomes an error after the parts of the earlier events. */
  read(events: readonly Sent[]): readonly Part[] {
    this.#parts = [];
    try {
      for (const event of events) {
        if (event !== "comment") this.#readData(event.data);
        else if (this.#deltas.length === 0) this.#push(COMMENT);
      }
    } catch (error) {
      this.#push({ type: "error", error });
    }
    this.#endDeltas();
    return this.#parts;
  }

  end(): readonly Part[] {
    const calls = this.#calls.map(({ id, name, input, more }): Part => {
      if (name === "") return { type: "error", error: new StrangeEvent({}) };
      const call = { type: "tool-call", toolCallId: id || newBareId(Date.now()), toolName: name, input } as const;
      return isThere(more.extra_content) ? { ...call, providerMetadata: { [CHAT]: more as JSONObject } } : call;
    });
    return [...calls, { type: "finish", finishReason: this.#finish, usage: usageOf(this.#usage) }];
  }

  #readData(data: string): void {
    this.#call.hasEvents = true;
    if (data === "[DONE]") {
      this.#call.hasEnded = true;
      return;
    }
    const event = jsonOf(data);
    if (!isObject(event)) throw new StrangeEvent(event);
    // Some servers send an error without an event name.
    if (isThere(event.error) || event.object === "error") throw event;
    const { choices, usage } = event;
    if (!Array.isArray(choices)) throw new StrangeEvent(event);
    if (isObject(usage)) {
      this.#usage = usage;
      this.#push({ type: "raw", rawValue: event });
    }
    const { delta, finish_reason: reason } = Object(choices[0]) as Json;
    if (typeof reason === "string") this.#finish = { unified: FINISHES[reason] ?? "other", raw: reason };
    if (isObject(delta)) this.#readDelta(delta);
  }

  #readDelta({ content, reasoning_content, reasoning, tool_calls: calls }: Json): void {
    this.#write("reasoning", reasoning_content ?? reasoning);
    if (!Array.isArray(content)) this.#write("text", content);
    else
      for (const { type, text, thinking } of content.map(Object)) {
        if (type === "text") this.#write("text", text);
        else if (type === "thinking" && Array.isArray(thinking))
          this.#write("reasoning", thinking.map((piece) => Object(piece).text ?? "").join(""));
      }
    if (Array.isArray(calls)) for (const call of calls) this.#readCall(Object(call));
  }

  #write(kind: "text" | "reasoning", delta: unknown): void {
    if (!isThere(delta)) return;
    if (typeof delta !== "string") throw new StrangeEvent(delta);
    if (this.#open !== kind) this.#push({ type: `${kind}-start`, id: kind });
    this.#open = kind;
    this.#deltas.push(delta);
  }

  #push(part: Part): void {
    this.#endDeltas();
    this.#parts.push(part);
  }

  #endDeltas(): void {
    if (this.#open === undefined || this.#deltas.length === 0) return;
    this.#parts.push({ type: `${this.#open}-delta`, id: this.#open, delta: this.#deltas.join("") });
    this.#deltas = [];
  }

  /** Some servers do not number their calls, or do not repeat the name with each piece. */
  #readCall({ index, id, function: named, ...more }: Json): void {
    const { name, arguments: input } = Object(named) as Json;
    const isNew = typeof id === "string" && id !== "" && typeof name === "string" && name !== "";
    const known =
      this.#calls.findLast((call) => call.id === id) ??
      (isNew ? undefined : this.#calls.findLast((call) => call.index === index && (isThere(index) || !isThere(name))));
    const call = known ?? { own: String(this.#calls.length), index, id: "", name: "", input: "", more: {} };
    if (!known) this.#calls.push(call);
    if (typeof name === "string") call.name ||= name;
    if (typeof id === "string") call.id ||= id;
    if (isThere(more.extra_content)) call.more = { extra_content: more.extra_content };
    const delta = typeof input === "string" ? input : "";
    call.input += delta;
    this.#push({ type: "tool-input-delta", id: call.own, delta });
  }
}

const FINISHES: Readonly<Record<string, LanguageModelV3FinishReason["unified"]>> = {
  stop: "stop",
  length: "length",
  content_filter: "content-filter",
  tool_calls: "tool-calls",
  function_call: "tool-calls",
};

function usageOf(usage: Json | undefined): LanguageModelV3Usage {
  const { prompt_tokens: input, completion_tokens: output } = usage ?? {};
  const { cached_tokens: cached } = Object(usage?.prompt_tokens_details) as Json;
  const { reasoning_tokens: reasoning } = Object(usage?.completion_tokens_details) as Json;
  const count = (value: unknown) => (usage ? Number(value ?? 0) : undefined);
  return {
    inputTokens: { total: count(input), noCache: undefined, cacheRead: count(cached), cacheWrite: undefined },
    outputTokens: { total: count(output), text: undefined, reasoning: count(reasoning) },
  };
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
