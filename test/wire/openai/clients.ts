import OpenAI, { type APIError, type ClientOptions } from "openai";
import { SECRETS, type SomeConfig } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";

/** OpenAI's own client, all of whose replies are held to the contract. */
export const openClient = (url: string, options: ClientOptions = {}): OpenAI =>
  new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: SECRETS.key,
    fetch: (target, init) => checkedFetch(new Request(target, init)),
    ...options,
  });

export const refusalOf = async (work: Promise<unknown>): Promise<APIError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error;
    throw error;
  }
  throw new Error("it was not refused");
};

/** With the door open. */
export const OPEN: NonNullable<SomeConfig["gateway"]> = { openai: { enabled: true }, defaultAgent: "main" };

export const hello = (content = "Hello there, friend") => ({
  model: "main",
  messages: [{ role: "user" as const, content }],
});
