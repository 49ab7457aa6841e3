import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Clock } from "#kit/clock.ts";
import { createLineCutter } from "#kit/programs/lines.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { Program } from "#kit/programs/program.ts";
import { type RunningProgram, startProgram } from "#kit/programs/start.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";

/** The longest message, which is one line. A server that writes a longer one has gone wrong. */
const LINE_BYTES = 16 * 1024 ** 2;

/** The limit on unread answers: a server that sends requests and reads no answers is ended past it. */
const UNREAD_BYTES = 16 * 1024 ** 2;

type StdioParts = {
  clock: Clock;
  say: (said: StderrLine) => void;
  /** Reports one more line; false if it is one too many. */
  mayTell: () => boolean;
};

/** The protocol over the standard input and output of a program. The transport starts the program and ends it. */
export const openStdioTransport = (program: Program, { clock, say, mayTell }: StdioParts): Transport => {
  let running: RunningProgram | undefined;
  let closing: Promise<void> | undefined;

  const read = async (started: RunningProgram): Promise<void> => {
    const lines = createLineCutter(LINE_BYTES);
    try {
      for await (const bytes of outputOf(started, clock)) {
        for (const line of lines.push(bytes)) {
          if (!mayTell()) return;
          const message = messageOf(line);
          if (message) transport.onmessage?.(message);
        }
      }
    } catch {
      // A line that is too long is the end of the server.
    }
    await transport.close();
  };
  const transport: Transport = {
    async start() {
      running = await startProgram(program, { clock, say });
      if (closing) await running.stop();
      else void read(running);
    },
    async send(message) {
      const input = running?.stdin;
      if (!input?.writable) throw new Error("the server does not run");
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
};

/** A message of the protocol; undefined for any other line, because programs often print other text. */
const messageOf = (line: Buffer): JSONRPCMessage | undefined => {
  try {
    const message = JSON.parse(line.toString("utf8")) as { jsonrpc?: unknown } | null;
    return message?.jsonrpc === "2.0" ? (message as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
};
