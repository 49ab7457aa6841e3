import { expect } from "vitest";
import { Gateway, GatewayError, type GatewayOptions } from "#generated/clients/typescript/src/index.ts";
import { type Answer, answerServer } from "./answers.ts";

/** A server that answers one request after another, each in its own way, and a client for it. */
export async function answering(answers: Answer[], options: GatewayOptions = {}) {
  const server = await answerServer(answers);
  const { url } = server;
  return { ...server, client: new Gateway({ url, key: "secret", webhookToken: "hook", ...options }) };
}

export async function failureOf(call: PromiseLike<unknown>): Promise<GatewayError> {
  const error = await Promise.resolve(call).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}
