import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundJournal } from "./found.ts";

const ENDS: Readonly<Record<string, string>> = {
  "turn.completed": "completed",
  "turn.failed": "failed",
  "turn.cancelled": "cancelled",
};

/**
 * The stream of one session: no gap, no repeat; each turn begun once per attempt, each time from the queue; ended once and as the turn
 * says; and never two of them at a time.
 */
export const verifyJournal = ({ sessionId, from, entries }: FoundJournal, { turns }: Found): Broken[] => {
  const broken: Broken[] = [];
  const say = (words: string, ...ids: (string | undefined)[]) =>
    broken.push(breach("order in each session", words, sessionId, ...ids));
  const told = new Map<string, Told>();
  let due = from;
  let running: string | undefined;
  for (const { seq, turnId, name, attempt } of entries) {
    if (seq !== due) say(`seq ${seq} came where ${due} was due`);
    due = seq + 1;
    if (turnId === undefined) continue;
    // Of a turn that began before what is kept, the beginning is unknown.
    const turn = told.get(turnId) ?? new Told(from === 1 || name === "message.created");
    told.set(turnId, turn);
    if (name === "turn.queued" && !turn.mayQueue(running === turnId)) say("a turn was queued that did not run", turnId);
    if (name === "turn.started") {
      if (!turn.mayStart(attempt)) say(`attempt ${attempt} began where it could not`, turnId);
      if (running !== undefined && running !== turnId) say("a turn began while another ran", turnId, running);
      running = turnId;
    } else if (running === turnId && (name === "turn.queued" || name in ENDS)) running = undefined;
    turn.note(name);
  }
  for (const [turnId, { ends }] of told) {
    const status = turns.get(turnId)?.status;
    if (ends.length === 1 && (status === undefined || ends[0] === status)) continue;
    const words =
      ends.length === 1 ? `it is ${status}, and its stream says ${ends[0]}` : `its stream has ${ends.length} ends`;
    broken.push(breach("each turn ends exactly once", words, turnId, sessionId, ...ends));
  }
  return broken;
};

/** What a stream has told of one turn so far. */
class Told {
  readonly ends: string[] = [];
  readonly #isWhole: boolean;
  #isQueued = false;
  #attempts = 0;

  constructor(isWhole: boolean) {
    this.#isWhole = isWhole;
  }

  /** It is new, or was given back while it ran. */
  mayQueue(isRunning: boolean): boolean {
    return !this.#isWhole || (!this.#isQueued && (isRunning || this.#attempts === 0));
  }

  mayStart(attempt: number | undefined): boolean {
    return !this.#isWhole || (this.#isQueued && attempt === this.#attempts + 1);
  }

  note(name: string): void {
    const end = ENDS[name];
    if (end !== undefined) this.ends.push(end);
    if (name === "turn.queued") this.#isQueued = true;
    if (name === "turn.started") {
      this.#isQueued = false;
      this.#attempts++;
    }
  }
}
