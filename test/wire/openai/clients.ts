import OpenAI, { type APIError, type ClientOptions } from "openai";
import { SECRETS, type SomeConfig } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";

/** OpenAI's own client, all of whose replies are validated against the contract. */
export function openClient(url: string, options: ClientOptions = {}): OpenAI {
  return new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: SECRETS.key,
    fetch: (target, init) => checkedFetch(new Request(target, init)),
    ...options,
  });
}

export async function refusalOf(work: Promise<unknown>): Promise<APIError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

/** With the API enabled. */
export const OPEN: NonNullable<SomeConfig["gateway"]> = { openai: { enabled: true }, defaultAgent: "main" };

export function hello(content = "Hello there, friend") {
  return {
    model: "main",
    messages: [{ role: "user" as const, content }],
  };
}
