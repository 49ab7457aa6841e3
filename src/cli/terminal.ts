import { styleText } from "node:util";
import { visible } from "#kit/visible.ts";

/** Data goes to standard output, words for the person at the terminal to standard error. */
export function print(text: string): void {
  write(process.stdout, text.endsWith("\n") ? text : `${text}\n`);
}
export function say(text: string): void {
  write(process.stderr, text.endsWith("\n") ? text : `${text}\n`);
}

/** All output passes through here: no character of a server, a sender or a file controls a terminal. */
export function write(stream: NodeJS.WriteStream, text: string): void {
  stream.write(forTerminal(text));
}

/** A text in which only our own styling controls a terminal. */
export function forTerminal(text: string): string {
  return escapeOfOurs === undefined ? visible(text) : text.split(escapeOfOurs).map(visible).join("\u001b");
}

/** Stands for the escape character in a styled text. It is random, so that foreign text cannot contain it. */
let escapeOfOurs: string | undefined;

export function isTerminal(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY === true && process.env.TERM !== "dumb";
}

/** A terminal of unknown size reports 0 columns. Help and questions are then wrapped at 80. */
export function assumeWidth(): void {
  for (const stream of [process.stdout, process.stderr]) if (stream.columns === 0) stream.columns = 80;
}

type Style = Parameters<typeof styleText>[0];
/** Colours a text if standard output is a terminal and NO_COLOR is not set. For `print` and `say`, which write the style. */
export function styled(style: Style, text: string): string {
  if (!isTerminal(process.stdout) || process.env.NO_COLOR) return text;
  escapeOfOurs ??= process.getBuiltinModule("node:crypto").randomUUID();
  const [before = "", after = ""] = styleText(style, " ", { validateStream: false })
    .replaceAll("\u001b", escapeOfOurs)
    .split(" ");
  return before + text + after;
}

/** Prints the pieces of a text as they arrive. A character or a line break that is split over two pieces is printed once it is whole. */
export async function printPieces(pieces: AsyncIterable<string>): Promise<void> {
  let held = "";
  let last = "";
  try {
    for await (const piece of pieces) {
      const text = held + piece;
      held = /[\r\ud800-\udbff]$/.exec(text)?.[0] ?? "";
      last = text.slice(0, text.length - held.length) || last;
      write(process.stdout, text.slice(0, text.length - held.length));
    }
  } finally {
    // Also after Ctrl-C: the next output on a terminal starts a new line.
    if (held !== "") write(process.stdout, held);
    if (held !== "" || (last !== "" && !last.endsWith("\n"))) process.stdout.write("\n");
  }
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** Shows progress, only on a terminal and after a moment. */
export async function withProgress<Result>(words: string, work: Promise<Result>): Promise<Result> {
  if (!isTerminal(process.stderr)) return work;
  let frame = 0;
  let shown = false;
  const timer = setInterval(() => {
    if (frame++ < 3) return;
    shown = true;
    process.stderr.write(`\r${FRAMES[frame % FRAMES.length]} ${words}`);
  }, 100);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    if (shown) process.stderr.write(`\r${" ".repeat(words.length + 2)}\r`);
  }
}
