import { cleanSentence } from "#kit/clean-words.ts";
import { BackendError } from "#kit/errors.ts";
import type { Chunk } from "../backend.ts";
import { isObject, jsonOf } from "../json.ts";
import { readPiece } from "../turn-document.ts";

/** What is asked for: the reply of a turn, or a summary of a conversation. */
export type Want = "reply" | "summary";

export const WHO = "the agent's service";

/** The pieces of a whole answer. Throws where it is none. */
export const readWhole = (want: Want, status: number, type: string, text: string): Chunk[] => {
  if (type === "text/plain" && want === "reply") return [{ text }];
  if (!isJson(type))
    throw noAnswer(want, type === "" ? `${status} and no type` : `the type ${cleanSentence(type, 80)}`);
  const document = jsonOf(text);
  if (!isObject(document)) throw new BackendError(`${WHO} answered with broken JSON`);
  if (document.error !== undefined) readPiece({ error: document.error });
  const words = document[want];
  if (typeof words !== "string") throw noAnswer(want, `JSON without the text \`${want}\``);
  return readEnd(document, [{ text: words }]);
};

/** What the end of an answer tells beside its text, behind `chunks`. */
export const readEnd = (document: unknown, chunks: Chunk[] = []): Chunk[] => {
  const { model, usage } = Object(document);
  if (model != null) chunks.push(readPiece({ model }));
  if (usage != null) chunks.push(readPiece({ usage }));
  return chunks;
};

const noAnswer = (want: Want, what: string): BackendError =>
  new BackendError(
    want === "summary" ? `${WHO} does not write summaries (it answered with ${what})` : `${WHO} answered with ${what}`,
  );

/**
 * What an answer with an error's status says to callers. Of problem+json alone, whose `detail` is meant for them; anything else may be the
 * page of a proxy or the trace of a program.
 */
export const readFailure = (type: string, text: string | undefined): { detail?: string; retryable?: boolean } => {
  if (type !== "application/problem+json" || text === undefined) return {};
  const { detail, title, retryable } = Object(jsonOf(text));
  const words = typeof detail === "string" ? detail : title;
  const sentence = typeof words === "string" ? cleanSentence(words) : "";
  return { ...(sentence !== "" && { detail: sentence }), ...(typeof retryable === "boolean" && { retryable }) };
};

const isJson = (type: string): boolean => type === "application/json" || type.endsWith("+json");
