import type { Answer } from "./faults.ts";
import { type HttpStandIn, type Seen, startHttpStandIn } from "./http-stand-in.ts";

/** What a model is to answer, whoever's it is. */
export type ModelAnswer = {
  /** What it thinks before, which no reader sees. */
  thought?: string;
  text?: readonly string[];
  calls?: readonly { name: string; args: string }[];
  finish?: "stop" | "length" | "filter";
  usage?: { input: number; output: number; cached: number; reasoning: number };
  /** Wait between two events. */
  paceMs?: number;
  /** Told of each event that was written, by how many came before it. */
  onPiece?: (n: number) => void;
};

const DEFAULT_ANSWER: ModelAnswer = {
  text: ["Good", " morning", "! I am", " well 🙂", ",", " thank", " you", "."],
};
export const USAGE = { input: 31, output: 12, cached: 16, reasoning: 4 };

export type ModelStandIn = HttpStandIn & {
  /** The next requests are answered so, one each; after them all as before. */
  say(...answers: ModelAnswer[]): void;
};

/** A provider's server: `write` puts an answer into its wire format. */
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

/** Server-sent events as an answer of a model. */
export function eventStream(events: readonly string[], { paceMs, onPiece }: ModelAnswer, errorInside: string): Answer {
  return {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
    body: events,
    errorInside,
    ...(paceMs !== undefined && { paceMs }),
    ...(onPiece && { onPiece }),
  };
}
