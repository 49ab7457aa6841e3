import { createParser } from "eventsource-parser";
import { BackendError } from "#kit/errors.ts";
import { MIB } from "./ask.ts";

/** An event, or that there were comments. */
export type Sent = { name: string; data: string } | "comment";

/** The server-sent events in the pieces of a body, together where they came together. Throws a BackendError, after all events that came before it. */
export async function* eventsOf(
  who: string,
  pieces: AsyncIterable<Buffer>,
  longest = MIB,
): AsyncGenerator<readonly Sent[], void> {
  let sent: Sent[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: longest,
    onEvent: ({ event = "", data }) => sent.push({ name: event, data }),
    onComment: () => sent.at(-1) !== "comment" && sent.push("comment"),
    onError: ({ type }) => {
      isTooLong ||= type === "max-buffer-size-exceeded";
    },
  });
  const decode = createDecoder(who);
  for await (const piece of pieces) {
    parser.feed(decode(piece));
    if (sent.length > 0) yield sent;
    if (isTooLong) throw new BackendError(`${who} sent an event that is longer than ${longest / MIB} MiB`);
    sent = [];
  }
}

/** Decodes the pieces of a text in UTF-8, wherever they were cut. */
export const createDecoder = (who: string): ((piece: Uint8Array) => string) => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return (piece) => {
    try {
      return decoder.decode(piece, { stream: true });
    } catch {
      throw new BackendError(`${who} sent what is no UTF-8`);
    }
  };
};
