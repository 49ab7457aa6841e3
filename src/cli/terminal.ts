import { styleText } from "node:util";

/** Data goes to standard output, words for the person at the terminal to standard error. */
export const print = (text: string): void => void process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
export const say = (text: string): void => void process.stderr.write(text.endsWith("\n") ? text : `${text}\n`);

export const isTerminal = (stream: NodeJS.WriteStream): boolean => stream.isTTY === true && process.env.TERM !== "dumb";

type Style = Parameters<typeof styleText>[0];
/** Coloured where standard output is a terminal and NO_COLOR is not set. */
export const styled = (style: Style, text: string): string =>
  isTerminal(process.stdout) && !process.env.NO_COLOR ? styleText(style, text, { validateStream: false }) : text;

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** Shows that something goes on, while it does: on a terminal only, and after a moment. */
export const withProgress = async <Result>(words: string, work: Promise<Result>): Promise<Result> => {
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
};
