import type { Readable } from "node:stream";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { createCredit } from "#kit/credit.ts";

const LINE_CHARACTERS = 1_000;
/** A program that talks more than this is heard no longer, but for so many lines a second. */
const LINES = { atOnce: 50, aSecond: 1 };

/** A line that a program wrote to standard error; `unheard`: bytes before it that were left out. */
export type StderrLine = { line: string; unheard?: number };

/**
 * Reads what a program writes to standard error, always, so that it is never kept waiting, and hands its lines on: cleaned, cut, and no
 * more than a log can bear.
 */
export function readStderr(stream: Readable, clock: Clock, say: (line: StderrLine) => void) {
  let begun = "";
  let last: string | undefined;
  let unheard = 0;
  const credit = createCredit(clock, LINES);
  const hear = (written: string): void => {
    const line = cleanSentence(written, LINE_CHARACTERS);
    if (line === "") return;
    last = line;
    credit.spend();
    say(unheard > 0 ? { line, unheard } : { line });
    unheard = 0;
  };
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = text.split("\n", LINES.atOnce + 1);
    for (const [n, line] of lines.entries()) {
      if (n === lines.length - 1) begun = (n === 0 ? begun + line : line).slice(0, LINE_CHARACTERS * 8);
      else if (credit.has()) hear(n === 0 ? begun + line : line);
      else unheard += line.length + 1;
    }
  });
  stream.on("end", () => {
    if (credit.has()) hear(begun);
    begun = "";
  });
  stream.on("error", () => {});
  return {
    /** The last line of it that was heard. */
    last: (): string | undefined => (begun === "" ? last : cleanSentence(begun, LINE_CHARACTERS) || last),
  };
}
