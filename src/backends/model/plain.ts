import type { LanguageModelV3CallOptions, LanguageModelV3Message } from "@ai-sdk/provider";
import { fixHeaders, type OutgoingRequest } from "../outbound/request-text.ts";

/** Where a request for text goes, and its head. */
export type Place = Omit<OutgoingRequest, "body">;

export type PlainCall = Omit<LanguageModelV3CallOptions, "abortSignal">;

/** Writes the body of a request for text alone as the SDK does; undefined for one that only the SDK can write. */
export type PlainBody = (model: string, call: PlainCall) => string | undefined;

/**
 * Requests for text alone that the SDK need not make: to make one, and to be told that it need not read the answer, costs it as much as all the
 * rest of a short turn. It makes the first one of a model. Where that is to the byte what would have been sent without it, the later ones go to the same
 * place with the same head; where it is not, the SDK makes them all.
 */
export class PlainRequests {
  readonly #model: string;
  readonly #write: PlainBody;
  #place: Place | undefined = undefined;
  #isLeftToSdk = false;

  constructor(model: string, write: PlainBody) {
    this.#model = model;
    this.#write = write;
  }

  bodyOf(call: PlainCall): string | undefined {
    return this.#isLeftToSdk ? undefined : this.#write(this.#model, call);
  }

  /** Where such bodies go, once that is known. */
  get place(): Place | undefined {
    return this.#place;
  }

  /** What the SDK has sent for a call whose body would have been `body`. */
  learn({ origin, path, headers, body: sent }: OutgoingRequest, body: string): void {
    if (sent === body) this.#place ??= { origin, path, always: fixHeaders(headers), headers: {} };
    else this.#isLeftToSdk = true;
  }
}

/**
 * OpenAI's chat completions. Put together by hand: of all that a turn with a short prompt does, making objects of it and writing those was the most
 * expensive.
 */
export const chatBody: PlainBody = (model, { prompt, maxOutputTokens, temperature, tools, providerOptions }) => {
  if (tools !== undefined || (providerOptions && Object.keys(providerOptions).length > 0)) return undefined;
  const messages: string[] = [];
  for (const message of prompt) {
    const content = textOf(message);
    if (content === undefined) return undefined;
    messages.push(`{"role":"${message.role}","content":${JSON.stringify(content)}}`);
  }
  const limit = maxOutputTokens === undefined ? "" : `"max_tokens":${JSON.stringify(maxOutputTokens)},`;
  const heat = temperature === undefined ? "" : `"temperature":${JSON.stringify(temperature)},`;
  return `{"model":${JSON.stringify(model)},${limit}${heat}"messages":[${messages.join()}],${STREAMED}}`;
};
const STREAMED = '"stream":true,"stream_options":{"include_usage":true}';

/** The text of a message that is nothing else. */
const textOf = ({ content }: LanguageModelV3Message): string | undefined => {
  if (typeof content === "string") return content;
  const [part] = content;
  return content.length === 1 && part?.type === "text" && !part.providerOptions ? part.text : undefined;
};
