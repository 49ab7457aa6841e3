import type { TurnStream } from "#generated/clients/typescript/src/index.ts";
import type { TurnEvent } from "#generated/clients/typescript/src/rest-types.ts";
import type { OutputOptions } from "./output.ts";
import { print, printPieces, withProgress } from "./terminal.ts";

/** Prints a reply while it is written; with `--json` the events, one per line; with `-q` only the turn's id, once it has ended. */
export async function printStream(stream: TurnStream, { json, quiet }: OutputOptions): Promise<void> {
  if (json || quiet) {
    for await (const event of stream) {
      if (json) print(JSON.stringify(event));
      else if (event.event === "turn.completed") print(event.data.turn_id);
      throwFailure(event);
    }
    return;
  }
  await printPieces(awaited(stream.text()));
}

/** The pieces, with progress shown until the first one. */
async function* awaited(text: AsyncIterable<string>): AsyncGenerator<string> {
  const pieces = text[Symbol.asyncIterator]();
  try {
    for (let next = await withProgress("waiting for the reply", pieces.next()); !next.done; next = await pieces.next())
      yield next.value;
  } finally {
    await pieces.return?.();
  }
}

/** A turn that ended without a reply, as an error with the exit code of one. */
function throwFailure({ event, data }: TurnEvent): void {
  if (event !== "turn.failed" && event !== "turn.cancelled") return;
  const { name, title, detail } =
    event === "turn.failed" ? data.error : { name: "turn-cancelled", title: "Turn cancelled", detail: undefined };
  throw Object.assign(new Error(title), {
    name,
    title,
    detail,
    turnId: data.turn_id,
    requestId: undefined,
    retryAfterMs: undefined,
  });
}
