import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { Used } from "../backend.ts";
import { type Price, priced } from "./prices.ts";
import { added, countTokens, NOTHING, tokensOf } from "./usage.ts";

/** What a reply uses: what is booked of the steps that ended, and what has come of the one under way. */
export class Spending {
  #booked: Used = NOTHING;
  /** Of the step under way: what the model was told, in tokens, and what it has written, in code units, whoever sees that. */
  #promptTokens = 0;
  #written = 0;
  /** Of the model that is asked. */
  price: Price | undefined;

  get booked(): Used {
    return this.#booked;
  }

  begin(prompt: readonly LanguageModelV3Message[], told: readonly LanguageModelV3Message[]): void {
    this.#promptTokens = tokensOf(prompt) + tokensOf(told);
  }

  write(characters: number): void {
    this.#written += characters;
  }

  /** All so far; `told` is what the provider has told of the step. Where nothing came of that, nobody knows whether it has begun. */
  soFar(told: Used | undefined): Used {
    return told || this.#written > 0 ? this.#withEstimate(told) : this.#booked;
  }

  /** The step broke off. */
  bookSoFar(told: Used | undefined): void {
    this.#book(this.soFar(told));
  }

  /** The step ended; `used` is what its provider counted, where it did. */
  bookStep(used: Used | undefined): void {
    this.#book(used ? added(this.#booked, priced(used, this.price)) : this.#withEstimate(undefined));
  }

  #book(sum: Used): void {
    this.#booked = sum;
    this.#written = 0;
  }

  #withEstimate(told: Used | undefined): Used {
    const output = Math.max(told?.output ?? 0, countTokens(this.#written));
    return added(this.#booked, priced({ ...told, input: told?.input || this.#promptTokens, output }, this.price));
  }
}
