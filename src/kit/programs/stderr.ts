import type { Readable } from "node:stream";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { createCredit } from "#kit/credit.ts";

const LINE_CHARACTERS = 1_000;
/** After this number of lines, only a limited number of lines per second is read from a program. */
const LINES = { atOnce: 50, aSecond: 1 };

/** A line that a program wrote to standard error; `unheard`: bytes before it that were left out. */
export type StderrLine = { line: string; unheard?: number };

/**
 * Always reads the standard error of a program, so that it is never blocked, and passes its lines on: cleaned, cut, and in a number that a log can
 * hold.
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
    /** The last line that was read. */
    last: (): string | undefined => (begun === "" ? last : cleanSentence(begun, LINE_CHARACTERS) || last),
  };
}
