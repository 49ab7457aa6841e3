import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { createLineCutter, LineTooLong } from "#kit/programs/lines.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { RunningProgram } from "#kit/programs/start.ts";

const LINE_BYTES = 16 * 1024 * 1024;
/** The number of the agent's requests that may wait for an answer. An agent that has more does not read its answers. */
const MOST_ASKED = 64;

type Message = { id?: unknown; method?: unknown; params?: unknown; result?: unknown; error?: unknown };

type Hearing = {
  onUpdate: (params: unknown) => Promise<void> | undefined;
  /** The prompt is answered: later messages belong to no turn. */
  onAnswer: () => void;
};

export type Spoken = {
  /** The messages that the SDK reads and writes: requests and their answers. */
  stream: Stream;
  /** Resolves when nothing more can be read; with undefined if the program only closed its output. */
  closed: Promise<BackendError | undefined>;
};

/**
 * The messages of an agent, each a line of JSON. Updates of a session are handled here, and reading waits while they have no
 * room: the SDK reads without a limit, and does not keep their order with the answer that ends the turn.
 */
export const speak = (program: RunningProgram, clock: Clock, { onUpdate, onAnswer }: Hearing): Spoken => {
  const asked = new Set<unknown>();
  let prompt: unknown;
  let open = 0;
  let controller: ReadableStreamDefaultController<AnyMessage> | undefined;

  const deliver = (message: Message): Promise<void> | undefined => {
    if (message.method === "session/update" && message.id === undefined) return onUpdate(message.params);
    if (typeof message.method === "string") {
      // There is no listener for other notifications, and the SDK would parse them first.
      if (message.id === undefined) return;
      if (++open > MOST_ASKED) throw new BackendError("the agent's program asks for too much at once");
    } else if (!asked.delete(message.id)) return;
    else if (message.id === prompt) onAnswer();
    controller?.enqueue(message as AnyMessage);
  };
  const read = async (): Promise<void> => {
    const lines = createLineCutter(LINE_BYTES);
    for await (const bytes of outputOf(program, clock)) {
      for (const line of lines.push(bytes)) {
        const message = messageIn(line);
        const room = message && deliver(message);
        if (room) await room;
      }
    }
  };

  const readable = new ReadableStream<AnyMessage>({
    start: (given) => {
      controller = given;
    },
  });
  const writable = new WritableStream<AnyMessage>({
    async write(message) {
      const { id, method } = message as Message;
      if (method === undefined) open--;
      else if (id !== undefined) asked.add(id);
      if (method === "session/prompt") prompt = id;
      await written(program, `${JSON.stringify(message)}\n`);
    },
  });
  return { stream: { readable, writable }, closed: read().then(() => undefined, asFailure) };
};

const decoder = new TextDecoder("utf-8", { fatal: true });

const messageIn = (line: Buffer): Message | undefined => {
  if (line.length <= 1 && line.toString().trim() === "") return undefined;
  let message: unknown;
  try {
    message = JSON.parse(decoder.decode(line));
  } catch {
    throw noMessage();
  }
  if (typeof message !== "object" || message === null || Array.isArray(message)) throw noMessage();
  if ((message as { jsonrpc?: unknown }).jsonrpc !== "2.0") throw noMessage();
  return message;
};

const noMessage = () => new BackendError("the agent's program wrote something that is no message of its protocol");

const asFailure = (error: unknown): BackendError => {
  if (error instanceof BackendError) return error;
  if (error instanceof LineTooLong) return new BackendError("the agent's program wrote a message longer than 16 MiB");
  return new BackendError("the agent's program cannot be read any more", { cause: error });
};

/** A failed write is no failure of its own: the program has ended, and its end is reported. */
const written = ({ stdin }: RunningProgram, line: string): Promise<void> =>
  new Promise((resolve) => void stdin.write(line, () => resolve()));
