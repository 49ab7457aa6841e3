import type { Backend, BackendTurn, Chunk } from "#backends/backend.ts";
import { abortSignalOf } from "#kit/stop-signal.ts";

/** One run of the scripted backend, which a test controls. */
export type ScriptedRun = {
  readonly turn: BackendTurn;
  readonly signal: AbortSignal;
  say(text: string): void;
  use(input: number, output: number): void;
  /** Any value, valid or not. */
  give(chunk: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** Resolves when the run is aborted or has ended. */
  readonly left: Promise<void>;
};

/** A backend whose runs a test controls. It ignores its signal unless told otherwise, because the gateway must survive that. */
export function createScriptedBackend(models?: readonly string[]) {
  const runs: ScriptedRun[] = [];
  const waiting: ((run: ScriptedRun) => void)[] = [];
  let taken = 0;

  const backend: Backend = {
    kind: "scripted",
    models,
    run: (turn, signal) => {
      const { run, chunks } = createRun(turn, abortSignalOf(signal));
      runs.push(run);
      if (waiting.length > 0) {
        taken++;
        waiting.shift()?.(run);
      }
      return chunks;
    },
    summarise: async (messages) => messages.map(({ text }) => text).join(" "),
  };

  return {
    backend,
    /** All runs so far, in the order of their starts. */
    runs: runs as readonly ScriptedRun[],
    /** The next run that no test has used yet, after its start. */
    next: (): Promise<ScriptedRun> =>
      taken < runs.length
        ? Promise.resolve(runs[taken++] as ScriptedRun)
        : new Promise((resolve) => waiting.push(resolve)),
  };
}

type Step = { chunk: unknown } | { error: unknown } | "end";

function createRun(turn: BackendTurn, signal: AbortSignal) {
  const steps: Step[] = [];
  let wake = () => {};
  let leave = () => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const add = (step: Step) => {
    steps.push(step);
    wake();
  };
  const chunks: AsyncIterable<Chunk> = {
    [Symbol.asyncIterator]: () => ({
      async next() {
        while (steps.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const step = steps.shift() as Step;
        if (step === "end") {
          leave();
          return { done: true, value: undefined };
        }
        if ("error" in step) {
          leave();
          throw step.error;
        }
        return { done: false, value: step.chunk as Chunk };
      },
      async return() {
        leave();
        return { done: true, value: undefined };
      },
    }),
  };
  const run: ScriptedRun = {
    turn,
    signal,
    left,
    say: (text) => add({ chunk: { text } }),
    use: (input, output) => add({ chunk: { usage: { input, output } } }),
    give: (chunk) => add({ chunk }),
    end: () => add("end"),
    fail: (error) => add({ error }),
  };
  return { run, chunks };
}
