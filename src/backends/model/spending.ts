import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { Tool } from "#tools/tool.ts";
import type { Used } from "../backend.ts";
import { countsIn, NOTHING, tokensIn } from "../token-counts.ts";

/** The price of a million tokens, from the configuration. */
export type Price = { input: number; cachedInput: number | undefined; output: number };

const MILLION = 1_000_000;

/**
 * The cost of these tokens in billionths: computed exactly, and rounded once. Reasoning is part of the output, and cached tokens
 * are part of the input.
 */
export function costOf({ input, output, cached = 0 }: Used, price: Price): number {
  const known = Math.min(cached, input);
  const atOnce =
    (input - known) * millionths(price.input) +
    known * millionths(price.cachedInput ?? price.input) +
    output * millionths(price.output);
  return Math.min(Math.round(atOnce / 1_000), Number.MAX_SAFE_INTEGER);
}

/** A price in whole millionths of its currency. */
function millionths(price: number): number {
  return Math.round(price * MILLION);
}

/** The same usage with its cost, if its model has a price. */
export function priced(used: Used, price: Price | undefined): Used {
  return price ? { ...used, cost: costOf(used, price) } : used;
}

export function added(one: Used, other: Used): Used {
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    ...(one.cached || other.cached ? { cached: (one.cached ?? 0) + (other.cached ?? 0) } : {}),
    ...(one.cost || other.cost ? { cost: (one.cost ?? 0) + (other.cost ?? 0) } : {}),
    ...(one.reasoning || other.reasoning ? { reasoning: (one.reasoning ?? 0) + (other.reasoning ?? 0) } : {}),
  };
}

/** An estimate of the tokens that a provider will count for a prompt. */
export function tokensOf(prompt: readonly LanguageModelV3Message[]): number {
  return tokensIn(prompt.reduce((sum, { content }) => sum + lengthOf(content), 0));
}

function lengthOf(content: LanguageModelV3Message["content"]): number {
  if (typeof content === "string") return content.length;
  let length = 0;
  for (const part of content) {
    if (part.type === "text" || part.type === "reasoning") length += part.text.length;
    else if (part.type === "tool-call") length += lengthOfValue(part.input);
    else if (part.type === "tool-result" && "value" in part.output) length += lengthOfValue(part.output.value);
  }
  return length;
}

function lengthOfValue(value: unknown): number {
  return typeof value === "string" ? value.length : String(JSON.stringify(value)).length;
}

/** An estimate of the tokens that a provider will count for the descriptions of tools. */
export function tokensOfTools(tools: readonly Tool[]): number {
  let length = 0;
  for (const { name, description, parameters } of tools)
    length += name.length + description.length + lengthOfValue(parameters);
  return tokensIn(length);
}

/**
 * The usage so far in a provider's event. Anthropic counts the tokens that its cache has read and written separately from the
 * input.
 */
export function usageInEvent(event: unknown): Used | undefined {
  const { usage, message, usageMetadata } = Object(event) as Record<string, unknown>;
  const reported = usage ?? (Object(message) as { usage?: unknown }).usage ?? usageMetadata;
  const counts = countsIn(reported);
  if (!counts) return undefined;
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = reported as Record<string, unknown>;
  return { ...counts, input: counts.input + Number(read ?? 0) + Number(written ?? 0) };
}

/** The usage of a reply: the booked usage of the steps that ended, and an estimate for the current one. */
export class Spending {
  #booked: Used = NOTHING;
  /** The current step: its prompt in tokens, and its output in code units, including output that no reader sees. */
  #promptTokens = 0;
  #written = 0;
  /** The usage of the current step that its provider has reported so far. */
  reported: Used | undefined;
  /** The price of the model that is asked. */
  #price: Price | undefined;

  get booked(): Used {
    return this.#booked;
  }

  begin(prompt: readonly LanguageModelV3Message[], price: Price | undefined): void {
    this.#promptTokens = tokensOf(prompt);
    this.#price = price;
  }

  write(characters: number): void {
    this.#written += characters;
  }

  /** The total so far. If the current step had no output yet, it is not counted, because it may not have started. */
  soFar(): Used {
    return this.reported || this.#written > 0 ? this.#withEstimate() : this.#booked;
  }

  /** The step broke off. */
  bookSoFar(): void {
    this.#book(this.soFar());
  }

  /** The step ended; `used` is the provider's own count, if it gave one. */
  bookStep(used: Used | undefined): void {
    if (!used) this.reported = undefined;
    this.#book(used ? added(this.#booked, priced(used, this.#price)) : this.#withEstimate());
  }

  #book(sum: Used): void {
    this.#booked = sum;
    this.#written = 0;
    this.reported = undefined;
  }

  #withEstimate(): Used {
    const output = Math.max(this.reported?.output ?? 0, tokensIn(this.#written));
    const used = { ...this.reported, input: this.reported?.input || this.#promptTokens, output };
    return added(this.#booked, priced(used, this.#price));
  }
}
