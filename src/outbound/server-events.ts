import { createParser } from "eventsource-parser";
import { BackendError } from "#kit/errors.ts";
import { type Answer, MIB } from "./ask.ts";

/** An event, or a sign that there were comments. */
export type Sent = { name: string; data: string; id: string | undefined } | "comment";

/**
 * The server-sent events of an answer, grouped as they arrived. Throws a BackendError, after all earlier events: above `most` bytes in all, above
 * `longest` bytes of one event, and for an answer that is not UTF-8.
 */
export async function* eventsOf(
  answer: Pick<Answer, "who" | "next">,
  most: number,
  longest = MIB,
): AsyncGenerator<readonly Sent[], void> {
  const { who } = answer;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let events: Sent[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: longest,
    onEvent: ({ event = "", data, id }) => events.push({ name: event, data, id }),
    onComment: () => events.at(-1) !== "comment" && events.push("comment"),
    onError: ({ type }) => {
      isTooLong ||= type === "max-buffer-size-exceeded";
    },
  });
  for (let piece = await answer.next(most); piece; piece = await answer.next(most)) {
    let text: string;
    try {
      text = decoder.decode(piece, { stream: true });
    } catch {
      throw new BackendError(`${who} sent text that is not UTF-8`);
    }
    events = [];
    parser.feed(text);
    if (events.length > 0) yield events;
    if (isTooLong) throw new BackendError(`${who} sent an event that is longer than ${longest / MIB} MiB`);
  }
}
