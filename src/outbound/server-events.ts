import { isUtf8 } from "node:buffer";
import { createParser } from "eventsource-parser";
import { BackendError } from "#kit/errors.ts";
import { type Answer, MIB } from "./ask.ts";

/** An event, or a sign that there were comments. */
export type Sent = { name: string; data: string; id: string | undefined } | "comment";

/** The server-sent events of an answer, grouped as they came. Throws a BackendError, after all events that came before it. */
export async function* eventsOf(
  answer: Pick<Answer, "who" | "next">,
  most: number,
  longest = MIB,
): AsyncGenerator<readonly Sent[], void> {
  const read = createEventReader(answer.who, longest);
  for (let piece = await answer.next(most); piece; piece = await answer.next(most)) {
    const { events, error } = read(piece);
    if (events.length > 0) yield events;
    if (error) throw error;
  }
}

type Events = { events: readonly Sent[]; error: BackendError | undefined };

/** Reads the events that end in each piece of a body; `error` comes after them. */
export const createEventReader = (who: string, longest: number): ((piece: Buffer) => Events) => {
  let events: Sent[] = [];
  let error: BackendError | undefined;
  const parser = createParser({
    maxBufferSize: longest,
    onEvent: ({ event = "", data, id }) => events.push({ name: event, data, id }),
    onComment: () => events.at(-1) !== "comment" && events.push("comment"),
    onError: ({ type }) => {
      if (type !== "max-buffer-size-exceeded") return;
      error ??= new BackendError(`${who} sent an event that is longer than ${longest / MIB} MiB`);
    },
  });
  const decode = createDecoder(who);
  return (piece) => {
    events = [];
    parser.feed(decode(piece));
    return { events, error };
  };
};

const NOTHING: Buffer = Buffer.alloc(0);

/** Decodes the pieces of a text in UTF-8, wherever they were cut. */
export const createDecoder = (who: string): ((piece: Buffer) => string) => {
  let cut: Buffer = NOTHING;
  return (piece) => {
    const bytes = cut.length === 0 ? piece : Buffer.concat([cut, piece]);
    const end = bytes.length - cutBytes(bytes);
    cut = bytes.subarray(end);
    const whole = bytes.subarray(0, end);
    if (!isUtf8(whole)) throw new BackendError(`${who} sent what is no UTF-8`);
    return whole.toString();
  };
};

/** The number of bytes at the end that belong to an incomplete character. */
const cutBytes = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
};
