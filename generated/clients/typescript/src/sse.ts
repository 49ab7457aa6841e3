// Copied by "npm run generate" from scripts/generate/runtime/typescript/sse.ts; do not edit.
import { BrokenAnswer, readPieces } from "./body.ts";

/** One event of a `text/event-stream`. */
export interface ServerEvent {
  event: string;
  id: string;
  data: string;
}

/** The gateway sends something every 15 seconds. A stream that is silent for longer than this is lost. */
const SILENCE_MS = 45_000;
/** A larger event ends the stream. */
const MOST_EVENT_BYTES = 16 * 1024 * 1024;

/** The events of a response, as specified by the WHATWG. An incomplete event is omitted. */
export async function* readEvents({ body }: Response): AsyncGenerator<ServerEvent> {
  let event = "";
  let id = "";
  let data: string[] = [];
  let size = 0;
  if (body === null) return;
  for await (const line of readLines(body)) {
    if (line === "") {
      if (data.length > 0) yield { event: event || "message", id, data: data.join("\n") };
      event = "";
      data = [];
      size = 0;
      continue;
    }
    const colon = line.indexOf(":");
    // A comment before an event is not part of it.
    if (colon === 0 && data.length === 0) continue;
    size += line.length;
    if (size > MOST_EVENT_BYTES) throw tooLarge();
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  let endsWithReturn = false;
  for await (const piece of readPieces(body, withinSilence)) {
    text += piece;
    if (text.length > MOST_EVENT_BYTES + piece.length) throw tooLarge();
    if (piece === "" || !(endsWithReturn || /[\r\n]/.test(piece))) continue;
    endsWithReturn = piece.endsWith("\r");
    // A "\r" at the end may be the first half of "\r\n", so it waits for the next piece.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    text = lines.pop() ?? "";
    yield* lines;
  }
}

function tooLarge(): Error {
  return new BrokenAnswer(`an event is larger than ${MOST_EVENT_BYTES / 1024 / 1024} MiB`);
}

function withinSilence<Value>(reading: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout>;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the stream was silent for ${SILENCE_MS} ms`)), SILENCE_MS);
  });
  return Promise.race([reading, silence]).finally(() => clearTimeout(timer));
}
