import { BackendError } from "#kit/errors.ts";
import { createLineCutter, LineTooLong } from "#kit/programs/lines.ts";
import type { Chunk } from "../backend.ts";
import { createJoiner } from "../characters.ts";
import { jsonOf } from "../json.ts";
import { readPiece } from "../turn-document.ts";

/** Converts a program's bytes to pieces of a reply. */
export type Format = {
  push(bytes: Buffer): Iterable<Chunk>;
  end(): Iterable<Chunk>;
};

const LINE_BYTES = 1024 * 1024;
/** The number of line breaks that are held back because they may be the last. More of them are part of the text. */
const MOST_ENDS = 1024;

function notUtf8() {
  return new BackendError("the agent's program wrote output that is not UTF-8");
}

/** The reply is the program's output without the line breaks at its end, which programs usually add. */
export function readText(): Format {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let held = "";
  const decode = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch {
      throw notUtf8();
    }
  };
  return {
    *push(bytes) {
      const text = held + decode(bytes);
      let end = text.length;
      while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end--;
      if (text.length - end > MOST_ENDS) end = text.length;
      held = text.slice(end);
      if (end > 0) yield { text: text.slice(0, end) };
    },
    end() {
      decode();
      return [];
    },
  };
}

/** Each line is a piece, as JSON. Empty lines are skipped. */
export function readJsonLines(): Format {
  const lines = createLineCutter(LINE_BYTES);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const whole = createJoiner();
  function* read(line: Buffer): Generator<Chunk> {
    let text: string;
    try {
      text = decoder.decode(line);
    } catch {
      throw notUtf8();
    }
    if (text.trim() === "") return;
    const piece = jsonOf(text);
    if (piece === undefined) throw new BackendError("the agent's program wrote a line that is not JSON");
    const chunk = readPiece(piece);
    if (!("text" in chunk)) yield chunk;
    else {
      const text = whole(chunk.text);
      if (text !== "") yield { text };
    }
  }
  return {
    *push(bytes) {
      try {
        for (const line of lines.push(bytes)) yield* read(line);
      } catch (error) {
        if (error instanceof LineTooLong) throw new BackendError("the agent's program wrote a line longer than 1 MiB");
        throw error;
      }
    },
    *end() {
      const rest = lines.rest();
      if (rest) yield* read(rest);
    },
  };
}
