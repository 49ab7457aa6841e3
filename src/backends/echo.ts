import { setTimeout as sleep } from "node:timers/promises";
import { BackendError } from "#kit/errors.ts";
import { abortSignalOf, type StopSignal } from "#kit/stop-signal.ts";
import type { Backend, BackendTurn, Chunk } from "./backend.ts";
import { isLowSurrogate } from "./characters.ts";
import { digestOf } from "./summary.ts";
import { tokensIn } from "./token-counts.ts";

export type EchoSettings = {
  /** The wait before each piece of the reply. */
  delayMs?: number | undefined;
  /** The number of pieces that the reply is cut into. */
  chunks?: number | undefined;
  /** The number of attempts of each turn that fail first, with a failure that is worth another try. */
  failTimes?: number | undefined;
  /** The text of the failure; without `failTimes` every turn fails with it, and is not tried again. */
  fail?: string | undefined;
};

/** The built-in backend: it repeats the message. It is deterministic, so that the result of a test is known in advance. */
export function createEchoBackend(settings: EchoSettings = {}): Backend {
  return {
    kind: "echo",
    models: undefined,
    run: (turn, signal) => echo(turn, signal, settings),
    countTokens,
    summarise: async (messages, _signal, used) => {
      const summary = digestOf(messages);
      const input = messages.reduce((sum, { text }) => sum + countTokens(text), 0);
      used?.({ input, output: countTokens(summary) });
      return summary;
    },
  };
}

async function* echo(turn: BackendTurn, signal: StopSignal, settings: EchoSettings): AsyncGenerator<Chunk> {
  failAsSet(turn, settings);
  const { text } = turn.message;
  const { delayMs = 0, chunks = 1 } = settings;
  let sent = 0;
  for (const piece of chunks > 1 ? split(text, chunks) : [text]) {
    if (delayMs > 0) await wait(delayMs, signal);
    sent += piece.length;
    // Each piece has the usage so far, so that the output of a cancelled turn is counted.
    yield { text: piece, usage: { input: countTokens(text), output: tokensIn(sent) } };
  }
}

function failAsSet({ attempt }: BackendTurn, { failTimes = 0, fail }: EchoSettings): void {
  if (attempt <= failTimes) throw new BackendError(fail ?? "the echo agent is configured to fail", { retryable: true });
  if (failTimes === 0 && fail !== undefined) throw new BackendError(fail);
}

async function wait(ms: number, signal: StopSignal): Promise<void> {
  await sleep(ms, undefined, { signal: abortSignalOf(signal) }).catch(() => signal.throwIfAborted());
}

export function countTokens(text: string): number {
  return tokensIn(text.length);
}

/** Cuts a text into at most `count` pieces of similar length, never inside a character of two code units. */
function split(text: string, count: number): string[] {
  const pieces: string[] = [];
  for (let n = 0, from = 0; n < count; n++) {
    let to = Math.round((text.length * (n + 1)) / count);
    if (isLowSurrogate(text.charCodeAt(to))) to++;
    if (to > from) pieces.push(text.slice(from, to));
    from = Math.max(from, to);
  }
  return pieces;
}
