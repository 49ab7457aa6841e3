import { cleanSentence } from "#kit/clean-words.ts";
import { BackendError } from "#kit/errors.ts";
import { WHO } from "./card.ts";

/** The meaning of A2A's error codes, for the sender of the turn. The messages of these errors are the remote's own. */
const MEANINGS: Record<number, string> = {
  [-32602]: "it does not take the message in this form",
  [-32603]: "an error of its own",
  [-32001]: "it does not know the task any more",
  [-32004]: "it does not support this",
  [-32005]: "it does not take text",
  [-32006]: "its answer was not valid",
  [-32009]: "it does not speak A2A 1.0",
};
const INTERNAL = -32603;

/** Converts an error that the SDK throws to a failure of the backend. */
export const failureOf = (thrown: unknown): BackendError => {
  for (let one = thrown, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth++) {
    if (one instanceof BackendError) return one;
    const { envelopeCode, errorResponse } = one as {
      envelopeCode?: unknown;
      errorResponse?: { error?: { code?: unknown } };
    };
    const code = envelopeCode ?? errorResponse?.error?.code;
    if (typeof code !== "number") continue;
    const meaning = MEANINGS[code];
    const words = `${WHO} answered with the error ${code}${meaning === undefined ? "" : `: ${meaning}`}`;
    return new BackendError(words, { retryable: code === INTERNAL, cause: quoted(one) });
  }
  return new BackendError(`${WHO} answered with something that is no A2A`, { cause: quoted(thrown) });
};

/** The message of the remote or of the SDK, for the log alone. */
const quoted = (thrown: unknown): BackendError => new BackendError(cleanSentence(String(thrown)));
