import type { Answer } from "./faults.ts";
import { type HttpStandIn, type Seen, startHttpStandIn } from "./http-stand-in.ts";

/** The answer of a model of any provider. */
export type ModelAnswer = {
  /** Its reasoning before the answer, which no reader gets. */
  thought?: string;
  text?: readonly string[];
  calls?: readonly { name: string; args: string }[];
  finish?: "stop" | "length" | "filter";
  usage?: { input: number; output: number; cached: number; reasoning: number };
  /** The wait between two events. */
  paceMs?: number;
  /** Called for each written event, with the number of events before it. */
  onPiece?: (n: number) => void;
};

const DEFAULT_ANSWER: ModelAnswer = {
  text: ["Good", " morning", "! I am", " well 🙂", ",", " thank", " you", "."],
};
export const USAGE = { input: 31, output: 12, cached: 16, reasoning: 4 };

export type ModelStandIn = HttpStandIn & {
  /** Sets the answers of the next requests, one each; later ones get the default. */
  say(...answers: ModelAnswer[]): void;
};

/** A provider's server: `write` converts an answer to its wire format. */
export async function startModelStandIn(
  write: (answer: ModelAnswer, seen: Seen) => Answer,
  usual: ModelAnswer = DEFAULT_ANSWER,
): Promise<ModelStandIn> {
  let answers: ModelAnswer[] = [];
  const standIn = await startHttpStandIn((seen) => {
    const { paceMs, ...answer } = write(answers.shift() ?? usual, seen);
    return paceMs === undefined ? answer : { ...answer, paceMs };
  });
  return {
    ...standIn,
    seen: standIn.seen,
    say(...next) {
      answers = next;
    },
    reset() {
      answers = [];
      standIn.reset();
    },
  };
}

/** The answer of a model as server-sent events. */
export function eventStream(events: readonly string[], { paceMs, onPiece }: ModelAnswer, errorInside: string): Answer {
  return {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
    body: events,
    errorInside,
    ...(paceMs !== undefined && { paceMs }),
    ...(onPiece && { onPiece }),
  };
}
