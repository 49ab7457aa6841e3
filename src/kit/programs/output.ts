import type { Clock } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { RunningProgram } from "./start.ts";

/** A process that left the group may hold the pipe open after the program has ended: this long without a byte is its end, too. */
const HELD_OPEN_MS = 200;
/** The most bytes that are read in one turn of the event loop: they may be a thousand lines, and other work must have its turn. */
const TURN_BYTES = 4 * 1024;

/**
 * The standard output of a program, to the end. It is read no sooner than it is asked for: a program with a slow reader waits.
 */
export async function* outputOf({ stdout, ended }: RunningProgram, clock: Clock): AsyncGenerator<Buffer> {
  let wake = () => {};
  let hasEnded = false;
  const onChange = () => wake();
  stdout.on("readable", onChange).on("end", onChange).on("close", onChange).on("error", onChange);
  void ended.then(() => {
    hasEnded = true;
    wake();
  });
  for (;;) {
    const bytes = stdout.read() as Buffer | null;
    if (bytes !== null) {
      for (let from = 0; from < bytes.length; from += TURN_BYTES) {
        if (from > 0) await yieldToOthers();
        yield bytes.subarray(from, from + TURN_BYTES);
      }
      continue;
    }
    if (stdout.readableEnded || stdout.destroyed) return;
    const forget = hasEnded ? clock.after(HELD_OPEN_MS, () => stdout.destroy()) : undefined;
    await new Promise<void>((resolve) => (wake = resolve));
    forget?.();
  }
}
