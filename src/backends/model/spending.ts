import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { Used } from "../backend.ts";
import { countsIn, NOTHING, tokensIn } from "../used.ts";

/** What a million tokens cost, as the configuration says it. */
export type Price = { input: number; cachedInput: number | undefined; output: number };

const MILLION = 1_000_000;

/** What these tokens cost, in billionths: exactly, and rounded once. Reasoning is part of the output, and what was cached of the input. */
export const costOf = ({ input, output, cached = 0 }: Used, price: Price): number => {
  const known = Math.min(cached, input);
  const atOnce =
    (input - known) * millionths(price.input) +
    known * millionths(price.cachedInput ?? price.input) +
    output * millionths(price.output);
  return Math.min(Math.round(atOnce / 1_000), Number.MAX_SAFE_INTEGER);
};

/** A price in whole millionths of its currency. */
const millionths = (price: number): number => Math.round(price * MILLION);

/** The same with its cost, where its model has a price. */
export const priced = (used: Used, price: Price | undefined): Used =>
  price ? { ...used, cost: costOf(used, price) } : used;

export const added = (one: Used, other: Used): Used => ({
  input: one.input + other.input,
  output: one.output + other.output,
  ...(one.cached || other.cached ? { cached: (one.cached ?? 0) + (other.cached ?? 0) } : {}),
  ...(one.cost || other.cost ? { cost: (one.cost ?? 0) + (other.cost ?? 0) } : {}),
  ...(one.reasoning || other.reasoning ? { reasoning: (one.reasoning ?? 0) + (other.reasoning ?? 0) } : {}),
});

/** About what a provider will count of a prompt. */
const tokensOf = (prompt: readonly LanguageModelV3Message[]): number =>
  tokensIn(prompt.reduce((sum, { content }) => sum + lengthOf(content), 0));

const lengthOf = (content: LanguageModelV3Message["content"]): number => {
  if (typeof content === "string") return content.length;
  let length = 0;
  for (const part of content) {
    if (part.type === "text" || part.type === "reasoning") length += part.text.length;
    else if (part.type === "tool-result" && "value" in part.output) length += String(part.output.value).length;
  }
  return length;
};

/** What an event of a provider's tells of the tokens so far. Anthropic counts what its cache has read and written beside the input. */
export const toldIn = (event: unknown): Used | undefined => {
  const { usage, message, usageMetadata } = Object(event) as Record<string, unknown>;
  const told = usage ?? (Object(message) as { usage?: unknown }).usage ?? usageMetadata;
  const counts = countsIn(told);
  if (!counts) return undefined;
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = told as Record<string, unknown>;
  return { ...counts, input: counts.input + Number(read ?? 0) + Number(written ?? 0) };
};

/** What a reply uses: what is booked of the steps that ended, and an estimate of the one under way. */
export class Spending {
  #booked: Used = NOTHING;
  /** Of the step under way: what the model was told, in tokens, and what it has written, in code units, whoever sees that. */
  #promptTokens = 0;
  #written = 0;
  /** What its provider has told of it so far. */
  told: Used | undefined;
  /** Of the model that is asked. */
  price: Price | undefined;

  get booked(): Used {
    return this.#booked;
  }

  begin(prompt: readonly LanguageModelV3Message[]): void {
    this.#promptTokens = tokensOf(prompt);
  }

  write(characters: number): void {
    this.#written += characters;
  }

  /** All so far. Where nothing came of the step under way, nobody knows whether it has begun. */
  soFar(): Used {
    return this.told || this.#written > 0 ? this.#withEstimate() : this.#booked;
  }

  /** The step broke off. */
  bookSoFar(): void {
    this.#book(this.soFar());
  }

  /** The step ended; `used` is what its provider counted, where it did. */
  bookStep(used: Used | undefined): void {
    if (!used) this.told = undefined;
    this.#book(used ? added(this.#booked, priced(used, this.price)) : this.#withEstimate());
  }

  #book(sum: Used): void {
    this.#booked = sum;
    this.#written = 0;
    this.told = undefined;
  }

  #withEstimate(): Used {
    const output = Math.max(this.told?.output ?? 0, tokensIn(this.#written));
    const used = { ...this.told, input: this.told?.input || this.#promptTokens, output };
    return added(this.#booked, priced(used, this.price));
  }
}
