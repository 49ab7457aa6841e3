import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { createLineCutter, LineTooLong } from "#kit/programs/lines.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { RunningProgram } from "#kit/programs/start.ts";
import { jsonOf } from "../json.ts";

const LINE_BYTES = 16 * 1024 * 1024;
/** The number of the agent's requests that may wait for an answer. An agent that has more does not read its answers. */
const MOST_ASKED = 64;
const NO_SUCH_METHOD = { code: -32601, message: "Method not found" };

type Message = { id?: unknown; method?: unknown; params?: unknown; result?: unknown; error?: unknown };

type Hearing = {
  /** Takes an update of a session. Reading waits for the promise that it may return. */
  onUpdate: (params: unknown) => Promise<void> | undefined;
  /** Returns the answer to a request for permission. */
  onPermission: (params: unknown) => unknown;
};

/** JSON-RPC with an agent's program: each message is a line of JSON, and they are handled in their order. */
export function openPeer(program: RunningProgram, clock: Clock, { onUpdate, onPermission }: Hearing) {
  const waiting = new Map<unknown, (answer: Message) => void>();
  let lastId = 0;
  let asked = 0;

  // A failed write is not a separate failure: the program has ended, and its end is reported.
  const send = (message: Message): Promise<void> =>
    new Promise((resolve) => {
      program.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`, () => resolve());
    });
  const answer = async (id: unknown, method: string, params: unknown): Promise<void> => {
    const isKnown = method === "session/request_permission";
    await send(isKnown ? { id, result: onPermission(params) } : { id, error: NO_SUCH_METHOD });
    asked--;
  };
  const handle = ({ id, method, params, ...answered }: Message): Promise<void> | undefined => {
    if (typeof method !== "string") {
      waiting.get(id)?.(answered);
      waiting.delete(id);
    } else if (id !== undefined) {
      if (++asked > MOST_ASKED) throw new BackendError("the agent's program sent too many requests at once");
      void answer(id, method, params);
    } else if (method === "session/update") return onUpdate(params);
    return undefined;
  };
  const read = async (): Promise<void> => {
    const lines = createLineCutter(LINE_BYTES);
    for await (const bytes of outputOf(program, clock)) {
      for (const line of lines.push(bytes)) {
        const message = messageIn(line);
        const room = message && handle(message);
        if (room) await room;
      }
    }
  };

  return {
    /** Rejects with the error that the agent answers. `onAnswer` is called before later messages are handled. */
    request(method: string, params: object, onAnswer = () => {}): Promise<unknown> {
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, ({ result, error }) => {
          onAnswer();
          if (error === undefined) resolve(result);
          else reject(error);
        });
        void send({ id, method, params });
      });
    },
    notify: (method: string, params: object): void => void send({ method, params }),
    /** Resolves at the end of the program's output, with the failure if it wrote anything that is not a message. */
    closed: read().then(() => undefined, asFailure),
  };
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The message in a line; undefined for a blank line. */
function messageIn(line: Buffer): Message | undefined {
  if (line.length <= 1 && line.toString().trim() === "") return undefined;
  let message: unknown;
  try {
    message = jsonOf(decoder.decode(line));
  } catch (error) {
    if (error instanceof BackendError) throw error;
  }
  if ((Object(message) as { jsonrpc?: unknown }).jsonrpc === "2.0") return message as Message;
  throw new BackendError("the agent's program wrote output that is not a message of its protocol");
}

function asFailure(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  if (error instanceof LineTooLong) return new BackendError("the agent's program wrote a message longer than 16 MiB");
  return new BackendError("the agent's program can no longer be read", { cause: error });
}
