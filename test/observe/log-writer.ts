// A program with a given standard output: it logs on command, and reports its state by IPC.
import { createLogger } from "#observe/logger.ts";

const logger = createLogger({ level: "info", format: "json", maxBufferedBytes: 256 * 1024 });
const filler = "x".repeat(400);
let next = 0;

function flood(ms: number): void {
  let beats = 0;
  const beat = setInterval(() => {
    for (let line = 0; line < 50; line++) logger.log("info", "flood", { n: next++, filler });
    if (++beats < ms / 5) return;
    clearInterval(beat);
    process.send?.({ lines: next, dropped: logger.dropped() });
  }, 5);
}

process.on("message", async (message: { flood?: number; line?: string; end?: boolean }) => {
  if (message.flood) flood(message.flood);
  if (message.line) {
    logger.log("info", message.line);
    process.send?.({ dropped: logger.dropped() });
  }
  if (message.end) {
    process.send?.({ written: await logger.flush() });
    await logger[Symbol.asyncDispose]();
    process.exit(0);
  }
});
process.send?.({ ready: true });
