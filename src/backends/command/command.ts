import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { Program } from "#kit/programs/program.ts";
import { type ProgramEnd, type RunningProgram, startProgram } from "#kit/programs/start.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import type { Events } from "#observe/events.ts";
import type { Backend, Chunk, Used } from "../backend.ts";
import { endedBadly, notStarted } from "../program-failure.ts";
import { summaryOf } from "../summary.ts";
import { tokensIn, usageUnknown } from "../token-counts.ts";
import { summaryDocument, type TurnDocument, turnDocument } from "../turn-document.ts";
import { type Format, readJsonLines, readText } from "./formats.ts";

type CommandSettings = Program & {
  agent: string;
  models: readonly string[];
  output: "text" | "json-lines";
  clock: Clock;
  events: Pick<Events, "programSaid">;
};

/** The maximum length of the output of a reply. */
const OUTPUT_BYTES = 16 * 1024 * 1024;
/** The time that a program may take to tidy up after the end of its output. */
const END_MS = 2_000;

/** Runs a program for each turn: the turn on its standard input, as JSON, the reply on its standard output. */
export function createCommandBackend(settings: CommandSettings): Backend {
  /** The running programs, each until no process of it is left. */
  const running = new Set<RunningProgram>();
  return {
    kind: "command",
    asksOutside: true,
    models: settings.models,
    async *run(turn, signal) {
      signal.throwIfAborted();
      const document = await turnDocument(turn);
      yield* answer(settings, document, signal, running);
    },
    async summarise(messages, signal, used) {
      if (messages.length === 0) return "";
      const document = summaryDocument(settings.agent, messages);
      const summary = await summaryOf(answer(settings, document, signal, running), used);
      if (summary.trim() === "") throw new BackendError("the agent's program did not write a summary");
      return summary;
    },
    async close() {
      await Promise.all([...running].map(({ exited }) => exited));
    },
  };
}

const FORMATS: Readonly<Record<CommandSettings["output"], () => Format>> = {
  text: readText,
  "json-lines": readJsonLines,
};

async function* answer(
  settings: CommandSettings,
  document: TurnDocument,
  signal: StopSignal,
  running: Set<RunningProgram>,
): AsyncGenerator<Chunk> {
  signal.throwIfAborted();
  const { clock, output } = settings;
  const program = await begin(settings, document.turnId);
  running.add(program);
  void program.exited.then(() => running.delete(program));
  const stop = () => void program.stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    // The turn may have been aborted while the program was started.
    signal.throwIfAborted();
    program.stdin.end(`${JSON.stringify(document)}\n`);
    const format = FORMATS[output]();
    const count = createCount(document.message.text);
    let bytes = 0;
    for await (const piece of outputOf(program, clock)) {
      bytes += piece.length;
      if (bytes > OUTPUT_BYTES) throw new BackendError("the agent's program wrote more than 16 MiB");
      for (const chunk of format.push(piece)) {
        signal.throwIfAborted();
        yield* count.add(chunk);
      }
    }
    signal.throwIfAborted();
    const end = await endOf(program, clock);
    signal.throwIfAborted();
    if (end.code !== 0) throw endedBadly(end, program);
    for (const chunk of format.end()) yield* count.add(chunk);
    if (!count.hasUsage()) yield usageUnknown("the agent's program", "an estimate");
    yield count.usage();
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

async function begin(settings: CommandSettings, turnId: string | null): Promise<RunningProgram> {
  const { agent, clock, events } = settings;
  const about = { program: `agents.${agent}`, turnId: turnId ?? undefined };
  try {
    return await startProgram(settings, { clock, say: (said) => events.programSaid({ ...about, ...said }) });
  } catch (error) {
    throw notStarted(error);
  }
}

function endOf({ ended }: RunningProgram, clock: Clock): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const late = new BackendError("the agent's program closed its output but did not exit");
    const forget = clock.after(END_MS, () => reject(late));
    void ended.then(resolve).finally(forget);
  });
}

/**
 * The usage of a run: as the program reports it, or counted in characters. It is sent with each piece, so that it is already
 * booked if the run is stopped.
 */
function createCount(asked: string) {
  const input = tokensIn(asked.length);
  let characters = 0;
  let said: Used | undefined;
  const usage = (): { usage: Used } => ({ usage: said ?? { input, output: tokensIn(characters) } });
  return {
    usage,
    hasUsage: () => said !== undefined,
    *add(chunk: Chunk): Generator<Chunk> {
      yield chunk;
      if ("usage" in chunk) said = chunk.usage;
      if (!("text" in chunk) || said) return;
      characters += chunk.text.length;
      yield usage();
    },
  };
}
