import type { Backend, BackendTurn, Chunk } from "#backends/backend.ts";
import { abortSignalOf } from "#kit/stop-signal.ts";

/** One run of the scripted backend, for a test to play. */
export type ScriptedRun = {
  readonly turn: BackendTurn;
  readonly signal: AbortSignal;
  say(text: string): void;
  use(input: number, output: number): void;
  /** Anything, chunk or not. */
  give(chunk: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** Resolves when the run was told to end, or has. */
  readonly left: Promise<void>;
};

/** A backend whose every run a test plays by hand. It answers no signal unless told to: that is the gateway's task to survive. */
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
    /** Every run so far, in the order they began. */
    runs: runs as readonly ScriptedRun[],
    /** The next run that no test has taken yet, when it has begun. */
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
