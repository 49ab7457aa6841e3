import { errors } from "#generated/errors.ts";
import type { TurnEvent } from "#generated/rest-types.ts";
import { ConnectionError } from "./connection-error.ts";
import { ProblemError } from "./problem-error.ts";
import { readEvents } from "./sse.ts";

export interface FollowOptions {
  /** Ends the reading, not the turn. */
  signal?: AbortSignal;
  /** How often a lost stream is taken up again without a new event in between; 5. */
  attempts?: number;
}

/** Opens the stream: behind an event of a turn, or from its start. */
export type OpenStream = (
  from: { turnId: string; after: string } | undefined,
  signal?: AbortSignal,
) => Promise<Response>;

const lastEvents: readonly TurnEvent["event"][] = ["turn.completed", "turn.failed", "turn.cancelled"];

/** A turn's events until its end. A stream that is lost before that is taken up again behind its last event. */
export async function* followTurn(
  open: OpenStream,
  { signal, attempts = 5 }: FollowOptions,
): AsyncGenerator<TurnEvent> {
  let from: { turnId: string; after: string } | undefined;
  for (let failed = 0; ; failed += 1) {
    let lost: unknown = new ConnectionError("the stream ended before the turn");
    try {
      const response = await open(from, signal);
      if (response.body === null) throw new ConnectionError("the stream has no body");
      for await (const { event, id, data } of readEvents(response.body)) {
        const turnEvent = { event, id, data: JSON.parse(data) } as TurnEvent;
        from = { turnId: turnEvent.data.turn_id, after: id };
        failed = 0;
        yield turnEvent;
        if (lastEvents.includes(turnEvent.event)) return;
      }
    } catch (error) {
      if (signal?.aborted || !isLost(error)) throw error;
      lost = error;
    }
    if (from === undefined || failed >= attempts) throw lost;
    await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 200 * 2 ** failed)));
  }
}

/** A connection that broke is worth another try (`fetch` says so with a TypeError), and so is a gateway that restarts. */
const isLost = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  error instanceof TypeError ||
  (error instanceof ProblemError && error.name !== "unknown" && errors[error.name].retry);
