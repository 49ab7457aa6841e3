import { createParser } from "eventsource-parser";
import { BackendError } from "#kit/errors.ts";
import { MIB, piecesOf } from "./ask.ts";

/** The longest that an event may be. */
const EVENT_CHARACTERS = MIB;

/** An event, or that there were comments. */
export type Sent = { name: string; data: string } | "comment";

/** The server-sent events of a body, together where they came together. Throws a BackendError, after all events that came before it. */
export async function* eventsOf(
  who: string,
  body: AsyncIterable<Buffer>,
  most: number,
): AsyncGenerator<readonly Sent[], void> {
  let sent: Sent[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: EVENT_CHARACTERS,
    onEvent: ({ event = "", data }) => sent.push({ name: event, data }),
    onComment: () => sent.at(-1) !== "comment" && sent.push("comment"),
    onError: ({ type }) => {
      isTooLong ||= type === "max-buffer-size-exceeded";
    },
  });
  const decode = createDecoder(who);
  for await (const piece of piecesOf(who, body, most)) {
    parser.feed(decode(piece));
    if (sent.length > 0) yield sent;
    if (isTooLong) throw new BackendError(`${who} sent an event that is longer than ${EVENT_CHARACTERS / MIB} MiB`);
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
