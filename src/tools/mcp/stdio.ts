import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { Clock } from "#kit/clock.ts";
import { ANSWER_LIMITS, limitPassed } from "#kit/json-limits.ts";
import { createLineCutter, LineTooLong } from "#kit/programs/lines.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { Program } from "#kit/programs/program.ts";
import { type RunningProgram, startProgram } from "#kit/programs/start.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";

/** The longest message, which is one line. A server that writes a longer line is ended. */
const LINE_MIB = 16;

/** The limit on unread answers: a server that sends requests and reads no answers is ended past it. */
const UNREAD_BYTES = 16 * 1024 ** 2;

type StdioParts = {
  clock: Clock;
  say: (said: StderrLine) => void;
  /** Reports one more line; false if it is one too many. */
  mayTell: () => boolean;
  /** Ends the server because of what it sent. */
  refuse: (what: string) => void;
};

/** The protocol over the standard input and output of a program. The transport starts the program, at the first call of `start`, and ends it. */
export function openStdioTransport(program: Program, { clock, say, mayTell, refuse }: StdioParts): Transport {
  let running: RunningProgram | undefined;
  let starting: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  const begin = async (): Promise<void> => {
    running = await startProgram(program, { clock, say });
    if (closing) await running.stop();
    else void read(running);
  };
  const read = async (started: RunningProgram): Promise<void> => {
    const lines = createLineCutter(LINE_MIB * 1024 ** 2);
    try {
      for await (const bytes of outputOf(started, clock)) {
        for (const line of lines.push(bytes)) {
          if (!mayTell()) return;
          const text = line.toString("utf8");
          const passed = limitPassed(text, ANSWER_LIMITS);
          if (passed !== undefined) return refuse(`a message that ${passed}`);
          const message = messageOf(text);
          if (message) transport.onmessage?.(message);
        }
      }
    } catch (error) {
      if (error instanceof LineTooLong) return refuse(`a message of more than ${LINE_MIB} MiB`);
    }
    await transport.close();
  };
  const transport: Transport = {
    start() {
      starting ??= begin();
      return starting;
    },
    async send(message) {
      const input = running?.stdin;
      if (!input?.writable) throw new Error("the server is not running");
      if (input.writableLength > UNREAD_BYTES) {
        void transport.close();
        throw new Error("the server does not read what it is sent");
      }
      input.write(`${JSON.stringify(message)}\n`);
    },
    /** Ends all waiting calls at once. Resolves when no process of the program is left, which may take a while. */
    close() {
      if (closing) return closing;
      closing = running?.stop() ?? Promise.resolve();
      transport.onclose?.();
      return closing;
    },
  };
  return transport;
}

/** A message of the protocol; undefined for any other line, because programs often print other text. */
function messageOf(line: string): JSONRPCMessage | undefined {
  try {
    const message = JSON.parse(line) as { jsonrpc?: unknown } | null;
    return message?.jsonrpc === "2.0" ? (message as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
}
